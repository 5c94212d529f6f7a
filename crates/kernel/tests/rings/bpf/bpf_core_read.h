/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* These programs read nothing of the kernel, which counts as the oldest one. */
#pragma once
#define bpf_core_enum_value_exists(type, value) 0
