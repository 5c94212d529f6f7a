/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The rings read nothing of the kernel. */
#pragma once
