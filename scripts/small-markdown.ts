/**
 * The Markdown parser as it is published. `markdown-it` is one file with rules that CommonMark has not,
 * such as tables; and it imports libraries for what CommonMark does not need (finding addresses in
 * plain text, encoding URLs, their international names), and a large table of character references. In
 * its place stand ours (decision 0031).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';

const sources = join(import.meta.dirname, '../packages/protocol/src/markdown');

/** What `markdown-it` gets instead of a library. */
const replacements: Readonly<Record<string, string>> = {
  entities: `export { decodeHTMLStrict } from '${sources}/character-references.ts';`,
  // Only called for links in plain text, which CommonMark has not.
  'linkify-it': 'export class LinkifyIt {}',
  // Only called to change the targets of links, which parser.ts leaves as they are written.
  mdurl: '',
  'punycode.js': 'export default {};',
  'uc.micro': 'export const P = /\\p{P}/u; export const S = /\\p{S}/u;',
};

/** The entries of rules that CommonMark has not, in the lists of `markdown-it`. */
const otherRules =
  /^\t\["(?:linkify|replacements|smartquotes|strikethrough)", [\w$.]+\],\n|^\t\[\n\t\t"table",\n[^\]]+\]\n\t\],\n/gm;
const countOfOtherRules = 7;

/** Methods that make HTML, change targets of links, or change which rules are used. */
const unusedMethods = [
  ...['attrSet', 'attrPush', 'attrJoin', '__find__', 'at', 'before', 'after', 'enableOnly'],
  ...['validateLink', 'normalizeLink', 'normalizeLinkText', 'set', 'configure'],
  ...['use', 'parseInline'],
];

/** Of a class of rules or of the renderer, and of the parser itself. */
const unusedTwice = ['enable', 'disable', 'render', 'renderInline'];

const method = (name: string) =>
  new RegExp(`^\\t${name}\\([^\\n]*\\) \\{\\n[\\s\\S]*?^\\t\\}\\n`, 'm');

/** Other code without effect here. All rules that are left are CommonMark's, so none is switched on or off. */
const unused: readonly (readonly [RegExp, string])[] = [
  // A table of modules that can be read as one object.
  [/^var utils_exports = [\s\S]*?^\}\);\n/m, 'var utils_exports = { unescapeAll };\n'],
  [/\/\* @__PURE__ \*\/ __exportAll\((\{\n\tparseLinkDestination[\s\S]*?\})\)/, '$1'],
  [/(parseLink\w+): \(\) => parseLink\w+(?=,?\n)/g, '$1'],
  [/^\t+"(?:renderer|linkify)",\n\t+new \w+\(\)\n/gm, '"unused", undefined\n'],
  [/(?:^_defineProperty\(MarkdownIt, "\w+", \w+\);\n)+/m, ''],
  // Members of objects without setters.
  [
    /_defineProperty\(\s*this,\s*(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*)?"(\w+)",\s*([^;]*?)\s*\);/g,
    'this.$1 = $2;',
  ],
  [/^\t\tthis\.unused = undefined;\n/gm, ''],
  [/^\tif \(state\.inlineMode\) \{\n[\s\S]*?^\t\} else /m, '\t'],
  [/^\t\tthis\.inlineMode = false;\n/m, ''],
  [/^\t\t\tif \(!rule\.enabled\) return;\n/m, ''],
  [/if \(rule\.enabled\) this/, 'this'],
  [/rule\.enabled && /, ''],
  [/^\t\t\tenabled: true,\n/gm, ''],
  [/^var config = \{\n[\s\S]*?^\};\n/m, ''],
  [
    /^\t\tconst \[presetNameOrOptions, options\] = args;\n[\s\S]*?^\t\}\n/m,
    '\t\tthis.options = { html: true, ...args[1] };\n\t}\n',
  ],
  [/^\t\tthis\.Token = Token;\n/gm, ''],
  // How each kind of token is written as HTML.
  [/^(?:default_rules\.\w+ = function\([\s\S]*?^\};\n)+/m, ''],
  // Whether a link is open, for addresses in plain text.
  [/^\t\tthis\.linkLevel = 0;\n/m, ''],
  [/^\t+(?:if \(isLink\w+\(token\.content\)\) )?state\.linkLevel(?:\+\+|--);\n/gm, ''],
  [/^\t+var _tokens_meta\$curr;\n/gm, ''],
  [
    /\(_tokens_meta\$curr = (tokens_meta\[curr\])\) === null [^;]+\.delimiters;/g,
    '$1?.delimiters;',
  ],
  // In fewer bytes: lists of characters, and what each platform has by now.
  [
    /(^function isWhiteSpace\(code\) \{\n)[\s\S]*?^\}\n/m,
    '$1\treturn /[^\\S\\u2028\\u2029\\ufeff]/.test(fromCodePoint(code));\n}\n',
  ],
  // All of these are punctuation or symbols, for which the character is tested then.
  [/isMdAsciiPunct\((?:last|next)Char\) \|\| /g, ''],
  [/(^function fromCodePoint\(c\) \{\n)[\s\S]*?^\}\n/m, '$1\treturn String.fromCodePoint(c);\n}\n'],
  // Texts of errors that only a fault of a rule causes.
  [/new Error\("[^"]+"\)/g, 'new Error("markdown-it")'],
  [/^var MarkdownItCallable = callable\(MarkdownIt\);\n/m, ''],
  [/MarkdownItCallable as default/, 'MarkdownIt as default'],
];

/** Replaces what must be there: another version of `markdown-it` may have other code. */
function replaced(text: string, [pattern, instead]: readonly [RegExp, string]): string {
  if (text.search(pattern) < 0) throw new Error(`markdown-it: nothing matches ${pattern}`);
  return text.replace(pattern, instead);
}

/** Takes the rules that CommonMark has not, and what is not used, out of `markdown-it`. */
function withoutUnused(text: string): string {
  const found = text.match(otherRules)?.length;
  if (found !== countOfOtherRules) {
    throw new Error(
      `markdown-it: expected ${countOfOtherRules} entries of other rules, not ${found}`,
    );
  }
  const replacements = [
    ...[...unusedMethods, ...unusedTwice, ...unusedTwice].map(
      (name) => [method(name), ''] as const,
    ),
    ...unused,
  ];
  return replacements.reduce(replaced, text.replace(otherRules, ''));
}

/** Bundles `markdown-it` without its libraries and without rules that CommonMark has not. */
export const smallMarkdown: Plugin = {
  name: 'small-markdown',
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(
      `^(?:${Object.keys(replacements).join('|').replaceAll('.', '\\.')})$`,
    );
    onResolve({ filter }, ({ path, importer }) =>
      /\/node_modules\/markdown-it\//.test(importer)
        ? { path, namespace: 'small-markdown', sideEffects: false }
        : undefined,
    );
    onLoad({ filter: /\/markdown-it\/dist\/markdown-it\.mjs$/ }, async ({ path }) => ({
      contents: withoutUnused(await readFile(path, 'utf8')),
    }));
    onLoad({ filter: /.*/, namespace: 'small-markdown' }, ({ path }) => ({
      contents: replacements[path] ?? '',
      resolveDir: sources,
    }));
  },
};

/** Bundles the parser with `markdown-it` in it, and returns the text of the module. */
export async function bundleParser(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(sources, 'parser.ts')],
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    plugins: [smallMarkdown],
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}
