/** The Markdown that is published with a package. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** Links to files and folders of the repository. */
const linkPattern = /\[([^\]]+)\]\(([\w./-]+(?:\.md|\.ts|\/))\)/g;

/**
 * Writes README, changelog and, for the client, its manual. A link to one of them leads to the file
 * next to it; other files are not in the package, so that of their links only the text remains.
 */
export function writePages(folder: string): void {
  const sources = [join(folder, 'README.md'), join(root, 'CHANGELOG.md')];
  if (basename(folder) === 'client') sources.push(join(root, 'docs/sdk.md'));
  const pages = sources.filter((path) => existsSync(path));
  const names = new Set(pages.map((path) => basename(path)));
  for (const path of pages) {
    const text = readFileSync(path, 'utf8').replace(linkPattern, (_, shown: string, to: string) =>
      names.has(basename(to)) ? `[${shown}](${basename(to)})` : shown,
    );
    writeFileSync(join(folder, 'dist', basename(path)), text);
  }
}
