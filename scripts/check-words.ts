/**
 * Lists words that the ten rules of CONTRIBUTING keep out of comments, titles, messages and docs.
 *
 * @example
 * npx node scripts/check-words.ts                    # the whole repository
 * npx node scripts/check-words.ts packages/client    # one folder
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The word, and what to write instead. */
const forbidden: readonly (readonly [RegExp, string])[] = [
  [/\bbehind\b/i, '"after" for order in time; name the relation otherwise'],
  [/\bbeside\b/i, '"next to", "with" or "in addition to"'],
  [/\bin front of\b/i, '"before"'],
  [/\b(whoever|whomever|nobody|somebody)\b/i, 'the actor: client, caller, device, owner, host'],
];

/** Standard terms that contain a listed word, words of the stable JSON of `courier`, a stored member. */
const allowed = [
  /\bbehind (a|the|one|its) (TLS |reverse )?prox(y|ies)\b/gi,
  /\bbehind NAT\b/g,
  /: '(group-|channel-)?behind'/g,
  /\breadonly behind: number|\bbehind: after\b|\bvalue\.behind\b/g,
];

/** The contract's text and the files that name the words. */
const leftOut = [
  /^docs\/protocol\//,
  /^scripts\/check(s|-words)\./,
  // What the messenger says to people.
  /^packages\/web\/src\/(?:text\/|[a-z]+\/(?:[a-z-]+-)?text\.ts$)/,
  /^(CONTRIBUTING|CHANGELOG)\.md$/,
];

/** One use of a listed word. */
export interface WordUse {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly instead: string;
}

/** Finds the listed words in a text. */
export function findWords(file: string, text: string): WordUse[] {
  return text.split('\n').flatMap((line, index) => {
    const rest = allowed.reduce((shorter, term) => shorter.replaceAll(term, ''), line);
    const hit = forbidden.find(([word]) => word.test(rest));
    return hit === undefined ? [] : [{ file, line: index + 1, text: line.trim(), instead: hit[1] }];
  });
}

function check(paths: readonly string[]): void {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const listed = execFileSync('git', ['ls-files', '--', ...paths], { cwd: root, encoding: 'utf8' });
  const files = listed
    .split('\n')
    .filter((file) => /\.(ts|md)$/.test(file) && !leftOut.some((out) => out.test(file)));
  const uses = files.flatMap((file) => findWords(file, readFileSync(`${root}${file}`, 'utf8')));
  for (const { file, line, text, instead } of uses) {
    process.stdout.write(`${file}:${line}: ${text}\n    write ${instead}\n`);
  }
  process.stdout.write(`${uses.length} uses of listed words in ${files.length} files\n`);
  if (uses.length > 0) process.exitCode = 1;
}

if (import.meta.main) check(process.argv.slice(2));
