// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of CPUs: numbers and ranges, such as `0,2-3`.

/// CPU numbers from here on are not believed.
const CPU_LIMIT: usize = 8_192;

/// CPUs that are asked for, each once and in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuList(pub Vec<usize>);

/// At least one CPU.
pub(crate) fn cpu_list(text: &str) -> Result<CpuList, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<usize>().ok().filter(|cpu| *cpu < CPU_LIMIT);
        match number(first).zip(number(last)) {
            Some((first, last)) if first <= last => list.extend(first..=last),
            _ => return Err(format!("{part:?} is no CPU; name some, such as 0,2-3")),
        }
    }
    list.sort_unstable();
    list.dedup();
    Ok(CpuList(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(cpu_list("3,0-1,1"), Ok(CpuList(vec![0, 1, 3])));
        for wrong in ["", "a", "1-", "-1", "3-1", "99999", "1,,2"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
