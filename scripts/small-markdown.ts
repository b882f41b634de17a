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

/** What makes HTML of tokens or changes the targets of links, and sets of rules other than CommonMark's. */
const unused: readonly (readonly [RegExp, string])[] = [
  [/^\t+new Renderer\(\)\n/m, 'undefined\n'],
  [/(?:^_defineProperty\(MarkdownIt, "\w+", \w+\);\n)+/m, ''],
  [/^\tdefault: \{\n[\s\S]*?^\t\},\n\tzero: \{\n[\s\S]*?^\t\},\n/m, ''],
  [/^\tnormalizeLink\(url\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\tnormalizeLinkText\(url\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\trender\(src, env = \{\}\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\tparseInline\(src, env\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\trenderInline\(src, env = \{\}\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\tuse\(plugin, \.\.\.params\) \{\n[\s\S]*?^\t\}\n/m, ''],
  [/^\tdisable\(list, ignoreInvalid = false\) \{\n\t\tlet result = \[\];\n[\s\S]*?^\t\}\n/m, ''],
  [/^\t+new LinkifyIt\(\)\n/m, 'undefined\n'],
  [/`MarkdownIt\. Failed to enable unknown rule\(s\): \$\{missed\}`/, 'missed'],
  [/`Wrong 'markdown-it' preset "\$\{presetName\}", check name`/, 'presetName'],
  [/"Wrong `markdown-it` preset, can't be empty"/, '""'],
  [/^\tvalidateLink\(url\) \{\n[\s\S]*?^\t\}\n/m, ''],
];

/** Takes the rules that CommonMark has not, and what is not used, out of `markdown-it`. */
function withoutUnused(text: string): string {
  const found = text.match(otherRules)?.length;
  if (found !== countOfOtherRules) {
    throw new Error(
      `markdown-it: expected ${countOfOtherRules} entries of other rules, not ${found}`,
    );
  }
  return unused.reduce(
    (rest, [pattern, instead]) => {
      if (!pattern.test(rest)) throw new Error(`markdown-it: nothing matches ${pattern}`);
      return rest.replace(pattern, instead);
    },
    text.replace(otherRules, ''),
  );
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
