/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The rings are no programs that are attached to anything. */
#pragma once
