/** Scripts with which shells complete the command line, made from its own definition. */
import type { Command } from 'commander';

/** One command: the words that lead to it, and what may follow them. */
interface Place {
  /** Empty for the command itself; else ` group send`. */
  readonly path: string;
  readonly verbs: readonly Named[];
  readonly options: readonly (Named & { readonly takesValue: boolean })[];
}

interface Named {
  readonly name: string;
  readonly description: string;
}

/** Lists a command and all its verbs. */
function placesOf(command: Command, path = ''): Place[] {
  const verbs = command.commands.map((each) => ({
    name: each.name(),
    description: each.description(),
  }));
  const options = command.options.flatMap(({ long, description, required }) =>
    typeof long === 'string' ? [{ name: long, description, takesValue: required }] : [],
  );
  const further = command.commands.flatMap((each) => placesOf(each, `${path} ${each.name()}`));
  return [{ path, verbs, options }, ...further];
}

const wordsOf = ({ verbs, options }: Place) =>
  [...verbs, ...options].map(({ name }) => name).join(' ');

/** Cases of a shell: the words that lead on, and what may follow each place. */
function cases(places: readonly Place[]): { readonly leading: string; readonly following: string } {
  const leading = places.slice(1).map(({ path }) => `'${path}'`);
  const following = places.map((place) => `    '${place.path}') candidates='${wordsOf(place)}' ;;`);
  return { leading: leading.join('|'), following: following.join('\n') };
}

function bash(places: readonly Place[]): string {
  const { leading, following } = cases(places);
  return `# Completion of courier for bash: source <(courier completion bash)
_courier() {
  local current=\${COMP_WORDS[COMP_CWORD]} place='' candidates='' index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$place \${COMP_WORDS[index]}" in
    ${leading}) place="$place \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$place" in
${following}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _courier courier
`;
}

function zsh(places: readonly Place[]): string {
  const { leading, following } = cases(places);
  return `#compdef courier
# Completion of courier for zsh: source <(courier completion zsh)
_courier() {
  local place='' candidates='' word
  for word in \${words[2,CURRENT-1]}; do
    case "$place $word" in
    ${leading}) place="$place $word" ;;
    esac
  done
  case "$place" in
${following}
  esac
  compadd -- \${=candidates}
  [[ $PREFIX == -* ]] || _files
}
compdef _courier courier
`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, verbs, options }) => {
    const condition = `-n '__courier_place "${path.trim()}"'`;
    return [
      ...verbs.map(
        ({ name, description }) => `${condition} -a ${name} -d ${inQuotes(description)}`,
      ),
      ...options.map(
        ({ name, description, takesValue }) =>
          `${condition} -l ${name.slice(2)}${takesValue ? ' -r' : ''} -d ${inQuotes(description)}`,
      ),
    ].map((line) => `complete -c courier ${line}`);
  });
  const known = places.slice(1).map(({ path }) => inQuotes(path.trim()));
  return `# Completion of courier for fish: courier completion fish | source
function __courier_place
  set -l place
  for word in (commandline -opc)[2..]
    contains -- (string join ' ' -- $place $word) ${known.join(' ')}; and set -a place $word
  end
  test "$place" = "$argv"
end
${lines.join('\n')}
`;
}

/** Quotes text for fish. */
const inQuotes = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

/** What writes the script of each shell. */
export const completionScripts: Readonly<Record<string, (root: Command) => string>> = {
  bash: (root) => bash(placesOf(root)),
  zsh: (root) => zsh(placesOf(root)),
  fish: (root) => fish(placesOf(root)),
};
