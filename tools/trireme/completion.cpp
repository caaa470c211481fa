// trireme completion: scripts that let shells complete verbs, options, operators and devices, made from the tables that
// the arguments are read by.
#include <fmt/format.h>

#include <memory>

#include "verbs.hpp"

namespace trireme::cli {
namespace {

// What may stand as an option's value, or as an argument.
struct Offer {
  std::vector<std::string> words;
  bool files = false;
  bool named = false;  // behind the '=' of NAME=VALUE
  bool empty() const { return words.empty() && !files; }
};

Offer offer_of(const Option& option) {
  const OptionDetails& details = option.details;
  Offer offer{.words = details.choices, .named = details.type.starts_with("NAME=")};
  if (details.words) offer.words = details.words();
  offer.files = details.type.find("FILE") != std::string::npos || details.type == "FOLDER";
  return offer;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// Every character of `special` behind a backslash.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != special.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string in_single_quotes(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

// What has a place in completion.
std::vector<const Command*> shown(const CommandLine& line) {
  std::vector<const Command*> verbs;
  for (const Command& each : line.verbs)
    if (!each.hidden) verbs.push_back(&each);
  return verbs;
}

// {0}: verbs; {1}: options of each verb, and those that take a value; {2}: values by "verb option".
constexpr const char* bash_script = R"(_trireme() {{
  local readline=${{COMP_WORDS[COMP_CWORD]}} words=() word joining='' k
  # Readline also breaks words at '=' and ':'; here they are whole.
  for word in "${{COMP_WORDS[@]:0:COMP_CWORD+1}}"; do
    if [[ ($joining || $word == [=:]) && ${{#words[@]}} -gt 1 ]]; then words[-1]+=$word; else words+=("$word"); fi
    if [[ $word == [=:] ]]; then joining=yes; else joining=''; fi
  done
  local last=${{words[-1]}} verb=${{words[1]}} option='' options='' with_value='' offered='' files='' named=''
  local value=$last
  if ((${{#words[@]}} == 2)); then
    offered='{0} --help --version'
  else
    case $verb in
{1}    esac
    if [[ $last == -*=* ]]; then
      option=${{last%%=*}} value=${{last#*=}}
    elif [[ " $with_value " == *" ${{words[-2]}} "* ]]; then
      option=${{words[-2]}}
    elif [[ $last == -* ]]; then
      offered="$options --help" option=none
    fi
    case "$verb $option" in
{2}    esac
  fi
  if [[ $named ]]; then
    [[ $value == *=* ]] || return 0
    value=${{value#*=}}
  fi
  local begin=${{last%"$value"}} before=${{last%"$readline"}}
  if [[ $readline == [=:] ]]; then before=$last; fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$value"; [[ $files ]] && compgen -f -- "$value")
  if [[ $files ]]; then compopt -o filenames 2>/dev/null; fi
  for k in "${{!COMPREPLY[@]}}"; do
    word=$begin${{COMPREPLY[k]}}
    COMPREPLY[k]=${{word#"$before"}}
  done
}}
complete -F _trireme trireme
)";

std::string for_bash(const CommandLine& line) {
  std::vector<std::string> names;
  std::string options, values;
  for (const Command* verb : shown(line)) {
    names.push_back(verb->name);
    std::vector<std::string> all, with_value;
    for (const Option& each : verb->options) {
      if (!each.positional()) all.push_back(each.name);
      if (!each.positional() && each.takes_value()) with_value.push_back(each.name);
      if (Offer offer = offer_of(each); each.takes_value() && !offer.empty())
        values += fmt::format("      '{} {}') offered='{}'{}{} ;;\n", verb->name, each.positional() ? "" : each.name,
                              joined(offer.words), offer.files ? " files=yes" : "", offer.named ? " named=yes" : "");
    }
    options += fmt::format("      {}) options='{}' with_value='{}' ;;\n", verb->name, joined(all), joined(with_value));
  }
  return fmt::format(fmt::runtime(bash_script), joined(names), options, values);
}

// _arguments' specification of one option: '*--type=[help]:NAME=TYPE:action'.
std::string zsh_argument(const Option& option) {
  const Offer offer = offer_of(option);
  std::vector<std::string> words;
  for (const std::string& each : offer.words) words.push_back(escaped(each, ":\\"));
  std::string action;
  if (!words.empty())
    action = offer.files || offer.named ? "compadd - " + joined(offer.words) : "(" + joined(words) + ")";
  if (offer.files) action = words.empty() ? "_files" : action + "; _files";
  if (offer.named && !action.empty()) action = "compset -P \"*=\" && " + action;
  if (action.find(' ') != action.npos && !action.starts_with('(')) action = "{" + action + "}";
  const std::string type = escaped(option.details.type.empty() ? option.name : option.details.type, ":\\");
  if (option.positional())
    return in_single_quotes(fmt::format("{}:{}:{}", option.repeatable() ? "*" : "1", type, action));
  const bool is_long = option.name.starts_with("--");
  std::string text = (option.repeatable() ? "*" : "") + option.name;
  if (option.takes_value()) text += is_long ? "=" : "+";
  text += "[" + escaped(option.help, ":[]\\") + "]";
  if (option.takes_value()) text += fmt::format(":{}:{}", type, action);
  return in_single_quotes(text);
}

std::string for_zsh(const CommandLine& line) {
  std::string text =
      "_trireme() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a verbs=(\n";
  for (const Command* verb : shown(line))
    text += fmt::format("    {}\n", in_single_quotes(verb->name + ":" + escaped(verb->summary, ":\\")));
  text +=
      "  )\n"
      "  _arguments -C '(- *)--help[all verbs]' '(- *)--version[the version]' '1: :->verb' '*:: :->rest'\n"
      "  case $state in\n"
      "    verb) _describe -t verbs verb verbs ;;\n"
      "    rest)\n"
      "      case $words[1] in\n";
  for (const Command* verb : shown(line)) {
    text += fmt::format("        {})\n          _arguments '(- *)--help[what {} takes]'", verb->name, verb->name);
    for (const Option& each : verb->options) text += " \\\n            " + zsh_argument(each);
    text += " ;;\n";
  }
  return text +
         "      esac ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _trireme ]]; then _trireme \"$@\"; else compdef _trireme trireme; fi\n";
}

// Fish's quotes know \' and \\.
std::string fish_text(std::string_view text) { return "'" + escaped(text, "'\\") + "'"; }

std::string for_fish(const CommandLine& line) {
  std::string text =
      "function __trireme_behind_equals\n"
      "    set -l name (string match -r '^[^=]*=' -- (commandline -ct))\n"
      "    and printf '%s\\n' $name$argv\n"
      "end\n"
      "complete -c trireme -f\n"
      "complete -c trireme -n __fish_use_subcommand -l help -d 'All verbs'\n"
      "complete -c trireme -n __fish_use_subcommand -l version -d 'The version'\n";
  for (const Command* verb : shown(line)) {
    text +=
        fmt::format("complete -c trireme -n __fish_use_subcommand -a {} -d {}\n", verb->name, fish_text(verb->summary));
    const std::string here = fmt::format("complete -c trireme -n '__fish_seen_subcommand_from {}'", verb->name);
    text += here + " -l help -d 'What it takes'\n";
    for (const Option& each : verb->options) {
      const Offer offer = offer_of(each);
      text += here;
      if (!each.positional())
        text += (each.name.starts_with("--") ? " -l " : " -s ") + each.name.substr(each.name.find_first_not_of('-'));
      if (offer.files) text += " -F";
      if (each.takes_value() && !each.positional()) text += " -r";
      if (!offer.words.empty())
        text += fmt::format(" -a {}", fish_text(offer.named ? "(__trireme_behind_equals " + joined(offer.words) + ")"
                                                            : joined(offer.words)));
      if (!each.positional()) text += " -d " + fish_text(each.help);
      text += "\n";
    }
  }
  return text;
}

std::string script_for(const CommandLine& line, const std::string& shell) {
  const std::string head =
      fmt::format("# Completion of {0} {1} for {2}; made by '{0} completion {2}'.\n", line.name, line.version, shell);
  if (shell == "bash") return head + for_bash(line);
  if (shell == "zsh") return "#compdef trireme\n" + head + for_zsh(line);
  return head + for_fish(line);
}

}  // namespace

Command completion_verb(const CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Command verb{.name = "completion", .summary = "A script that lets a shell complete verbs, options and operators"};
  verb.option("SHELL", *shell, "bash, zsh or fish", {.required = true, .choices = {"bash", "zsh", "fish"}});
  verb.footer =
      "'cmake --install' puts the scripts where the shells look for them. By hand:\n"
      "  source <(trireme completion bash)\n"
      "  trireme completion fish > ~/.config/fish/completions/trireme.fish";
  verb.run = [shell, &line]() -> Result<int> {
    fmt::print("{}", script_for(line, *shell));
    return fine;
  };
  return verb;
}

}  // namespace trireme::cli
