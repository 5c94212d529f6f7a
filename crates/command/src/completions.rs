// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completions, generated from the arguments.

use crate::verbs::NAMES;
use clap::Command;
use clap_complete::Shell;

/// Suffix of the bash completions of `tipme`: lines with a verb of the lab are passed to the
/// completions of the lab, installed beside them.
const BASH: &str = r#"
_tipme_or_lab() {
    local word lab=${BASH_SOURCE[0]%/*}/tipme-lab
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        -*) ;;
        VERBS)
            [[ -r $lab ]] || break
            declare -F _tipme_lab >/dev/null || . "$lab"
            _tipme_lab "$@"
            return
            ;;
        *) break ;;
        esac
    done
    _tipme "$@"
}

complete -F _tipme_or_lab -o nosort -o bashdefault -o default tipme
"#;

/// Prefix of the `tipme` function in zsh.
const ZSH: &str = r#"    local -a before=(${words[2,CURRENT-1]:#-*})
    if [[ $before[1] == (VERBS) ]] && (( $+functions[_tipme-lab] )); then
        _tipme-lab "$@"
        return
    fi
"#;

/// In fish, the verb on the line selects the completions.
const FISH: &str = "complete -c tipme -w tipme-lab\n";

/// Returns the completions of a program.
pub fn completions(program: Command, shell: Shell) -> String {
    let name = program.get_name().to_owned();
    if shell != Shell::Bash {
        return generated(program, &name, shell);
    }
    // The generator for bash confuses a hyphen in the name of a program with one in that of a verb.
    let plain = name.replace('-', "_");
    generated(program, &plain, shell).replace(&format!(" {plain}\n"), &format!(" {name}\n"))
}

fn generated(mut program: Command, name: &str, shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the completions of `tipme`, which leave the verbs of the lab to its own completions, if
/// installed.
pub fn with_lab(tipme: Command, shell: Shell) -> String {
    let text = completions(tipme, shell);
    match shell {
        Shell::Bash => text + &BASH.replace("VERBS", &NAMES.join(" | ")),
        Shell::Zsh => text.replacen(
            "_tipme() {\n",
            &format!("_tipme() {{\n{}", ZSH.replace("VERBS", &NAMES.join("|"))),
            1,
        ),
        Shell::Fish => text + FISH,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tipme() -> Command {
        crate::verbs::named(Command::new("tipme").subcommand(Command::new("status")))
    }

    /// Returns the words that bash offers for the last word of a line.
    fn offered(line: &[&str]) -> String {
        let folder = tempfile::tempdir().expect("there is room");
        let bench =
            Command::new("bench").subcommands([Command::new("timer"), Command::new("typing")]);
        let lab = completions(Command::new("tipme-lab").subcommand(bench), Shell::Bash);
        fs::write(folder.path().join("tipme-lab"), lab).expect("there is room");
        fs::write(folder.path().join("tipme"), with_lab(tipme(), Shell::Bash))
            .expect("there is room");
        let script = r#"
            . "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            set -- $(complete -p tipme)
            while [ "$1" != -F ]; do shift; done
            "$2" tipme "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[*]}""#;
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", script]).arg(folder.path().join("tipme")).args(line);
        String::from_utf8(bash.output().expect("there is a bash").stdout)
            .expect("these are words")
            .trim()
            .to_owned()
    }

    #[test]
    fn bash_completes_verbs_of_the_lab() {
        assert_eq!(offered(&["tipme", "st"]), "status");
        assert_eq!(offered(&["tipme", "be"]), "bench");
        assert_eq!(offered(&["tipme", "bench", "t"]), "timer typing");
        assert_eq!(offered(&["tipme", "--color=never", "bench", "ti"]), "timer");
        assert_eq!(offered(&["tipme", "status", "--h"]), "--help");
    }

    #[test]
    fn zsh_and_fish_load_the_completions_of_the_lab() {
        for (shell, words) in
            [(Shell::Zsh, "_tipme() {\n    local -a before"), (Shell::Fish, "-w tipme-lab")]
        {
            assert!(with_lab(tipme(), shell).contains(words), "{shell}");
        }
    }
}
