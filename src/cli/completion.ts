import { type Command, UsageError, type Values } from "./command.ts";
import type { Terminal } from "./terminal.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

const help = `millrace completion – let your shell complete commands and options

Usage: millrace completion bash|zsh|fish

Prints a script for your shell.

Options:
  -h, --help         this text

Examples:
  source <(npx millrace completion bash)        (or into ~/.bashrc)
  npx millrace completion zsh > "\${fpath[1]}/_millrace"
  npx millrace completion fish > ~/.config/fish/completions/millrace.fish
`;

/** Made from the commands' own definitions, so that it knows what they know. */
export function createCompletion(commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    summary: "let your shell complete commands and options",
    help,
    operands: ["shell"],
    verbs: shells,
    options: {},
    async run(values: Values, terminal: Terminal): Promise<number> {
      const shell = shells.find((one) => one === values.shell);
      if (shell === undefined)
        throw new UsageError(`There is a completion for ${shells.join(", ")}.`);
      terminal.print(writers[shell](toWords(commands())).trimEnd());
      return 0;
    },
  };
}

interface Option {
  readonly name: string;
  readonly takesValue: boolean;
}

interface Known {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly Option[];
  /** What may stand where the second word of a command would. */
  readonly verbs: readonly string[];
}

const toWords = (commands: readonly Command[]): Known[] =>
  commands.map(({ name, summary, options, verbs = [] }) => ({
    name,
    summary,
    verbs,
    options: [
      ...Object.entries(options).map(([option, { type }]) => ({
        name: option,
        takesValue: type === "string",
      })),
      { name: "help", takesValue: false },
    ],
  }));

const flags = ({ options }: Known): string => options.map(({ name }) => `--${name}`).join(" ");
const firstOf = ({ name }: Known): string => name.split(" ")[0] ?? "";
const firsts = (known: readonly Known[]): string[] => [...new Set(known.map(firstOf))];

/** The second words of a group: those of its commands, and verbs. */
function seconds(known: readonly Known[], first: string): string[] {
  return known
    .filter((one) => firstOf(one) === first)
    .flatMap(({ name, verbs }) => [...name.split(" ").slice(1), ...verbs]);
}

const groups = (known: readonly Known[]): string[] =>
  firsts(known).filter((first) => seconds(known, first).length > 0);

/** The longer names first, so that "jobs show" is not taken for "jobs". */
const byLength = (known: readonly Known[]): Known[] =>
  [...known].sort((a, b) => b.name.split(" ").length - a.name.split(" ").length);

const cases = (known: readonly Known[], write: (one: Known) => string): string =>
  byLength(known)
    .map((one) => `    "${one.name}"${one.name.includes(" ") ? "" : '" "*'}) ${write(one)} ;;`)
    .join("\n");

const writers: Record<Shell, (known: readonly Known[]) => string> = {
  bash: (known) => `# millrace completion for bash
_millrace() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}" words="" options=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${firsts(known).join(" ")} help" -- "$cur"))
    return
  fi
  if [ "$COMP_CWORD" -eq 2 ]; then
    case "$first" in
${groups(known)
  .map((first) => `      ${first}) words="${seconds(known, first).join(" ")}" ;;`)
  .join("\n")}
      help) words="${firsts(known).join(" ")}" ;;
    esac
  fi
  case "$first $second" in
${cases(known, (one) => `options="${flags(one)}"`)}
  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
    *) if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi ;;
  esac
}
complete -o filenames -F _millrace millrace
`,
  zsh: (known) => `#compdef millrace
# millrace completion for zsh
_millrace() {
  local -a found
  if (( CURRENT == 2 )); then
    found=(${firsts(known)
      .map((first) => `'${first}:${inQuotes(summaryOf(known, first))}'`)
      .join(" ")})
    _describe command found
    return
  fi
  if [[ \${words[CURRENT]} == -* ]]; then
    case "\${words[2]} \${words[3]}" in
${cases(known, (one) => `found=(${flags(one)})`)}
    esac
    compadd -- $found
    return
  fi
  if (( CURRENT == 3 )); then
    case "\${words[2]}" in
${groups(known)
  .map((first) => `      ${first}) compadd -- ${seconds(known, first).join(" ")}; return ;;`)
  .join("\n")}
    esac
  fi
  _files
}
compdef _millrace millrace
`,
  fish: (known) => `# millrace completion for fish
${known.flatMap((one) => fishLines(known, one)).join("\n")}
`,
};

const summaryOf = (known: readonly Known[], first: string): string =>
  known.find((one) => one.name === first)?.summary ?? seconds(known, first).join(", ");

/** For single quotes of zsh and fish; a colon would end a description of zsh. */
const inQuotes = (text: string): string => text.replaceAll("'", "’").replaceAll(":", " –");

function fishLines(known: readonly Known[], one: Known): string[] {
  const [first = "", second] = one.name.split(" ");
  const summary = inQuotes(one.summary);
  const others = seconds(known, first);
  const inCommand =
    second === undefined
      ? `__fish_seen_subcommand_from ${first}${others.length === 0 ? "" : `; and not __fish_seen_subcommand_from ${others.join(" ")}`}`
      : `__fish_seen_subcommand_from ${first}; and __fish_seen_subcommand_from ${second}`;
  const name =
    second === undefined
      ? `complete -c millrace -n __fish_use_subcommand -a ${first} -d '${summary}'`
      : `complete -c millrace -n '__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${others.join(" ")}' -a ${second} -d '${summary}'`;
  const verbs = one.verbs.map(
    (verb) => `complete -c millrace -n '__fish_seen_subcommand_from ${first}' -a ${verb}`,
  );
  const options = one.options.map(
    ({ name: option, takesValue }) =>
      `complete -c millrace -n '${inCommand}' -l ${option}${takesValue ? " -r" : ""}`,
  );
  return [name, ...verbs, ...options];
}
