/** The configuration file that `posthouse init` writes: every setting with what it means. */
import { needsRestart } from './live.ts';
import { expected, type Setting, settings } from './settings.ts';

const introduction = `// Configuration of a Posthouse relay: JSON with comments.
//
// Each setting has its meaning, its default, what it accepts, and the variable of the environment
// that overrides it. Lines with // have no effect: to change a setting, remove the // before it.
// The relay reads this file when it starts and at SIGHUP (\`systemctl reload posthouse\`). A setting
// that says "needs a restart" is taken over only by a restart. \`posthouse config explain\` shows all
// values, with where each comes from.
`;

/** Columns of a comment, with its indentation. */
const columns = 100;

/**
 * Returns the text of a file that sets `values` and has all other settings as comments.
 *
 * @param values by dotted path, as in `public.https`
 * @example
 * commentedConfig({ network: context, 'public.https': ['https://relay.example.com/svc/v1'] });
 */
export function commentedConfig(values: Readonly<Record<string, unknown>>): string {
  const lines: string[] = [];
  let open = '';
  for (const setting of settings) {
    const [group = '', name] = setting.path.split('.');
    const isNested = name !== undefined;
    if (open !== '' && open !== group) {
      lines.push('  },');
      open = '';
    }
    if (isNested && open === '') {
      lines.push('', `  "${group}": {`);
      open = group;
    }
    lines.push('', ...linesOf(setting, { name: name ?? group, indent: isNested ? 4 : 2, values }));
  }
  if (open !== '') lines.push('  },');
  // A group begins with its first setting, a file with its first one: no empty line between.
  const text = ['{', ...lines, '}', ''].join('\n').replaceAll('{\n\n', '{\n');
  return `${introduction}${text}`;
}

function linesOf(
  setting: Setting,
  {
    name,
    indent,
    values,
  }: {
    readonly name: string;
    readonly indent: number;
    readonly values: Readonly<Record<string, unknown>>;
  },
): string[] {
  const { path, meaning, variable } = setting;
  const space = ' '.repeat(indent);
  const byDefault =
    setting.default === undefined ? 'No default' : `Default: ${JSON.stringify(setting.default)}`;
  const restart = needsRestart(path) ? '; needs a restart' : '';
  const facts = `${byDefault}; ${expected(setting)}${restart}. ${variable}`;
  const comments = [...wrapped(meaning, indent), ...wrapped(facts, indent)];
  const isSet = Object.hasOwn(values, path);
  const value = JSON.stringify(isSet ? values[path] : (setting.default ?? ''));
  return [...comments, `${space}${isSet ? '' : '// '}"${name}": ${value},`];
}

/** Breaks a text into lines of comments. */
function wrapped(text: string, indent: number): string[] {
  const prefix = `${' '.repeat(indent)}// `;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && prefix.length + line.length + 1 + word.length > columns) {
      lines.push(`${prefix}${line}`);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, `${prefix}${line}`];
}
