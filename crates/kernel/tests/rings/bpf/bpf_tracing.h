/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The rings are not attached to anything. */
#pragma once
