/** The notices that licences ask for, of the libraries that a bundle contains. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Library {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** Returns name, version, licence and its text of each library. @param folders of the libraries */
export function noticesOf(folders: readonly string[]): string {
  const notices = folders.map((folder) => {
    const { name, version, license } = readLibrary(folder);
    if (license === undefined) throw new Error(`${folder} names no licence: look it up`);
    return `${name} ${version}\nLicence: ${license}\n\n${textsOf(folder)}`;
  });
  const start = 'This package contains the following libraries.\n';
  return [start, ...notices.sort()].join(`\n${'-'.repeat(80)}\n\n`);
}

function readLibrary(folder: string): Library {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Library;
}

/** The files of the library with its licence; some libraries have none. */
function textsOf(folder: string): string {
  const files = readdirSync(folder).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name));
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8').trim());
  return `${texts.join('\n\n')}\n`;
}
