/** Compares the messenger that an address serves with one that was built. */
import {
  digestOf,
  encodings,
  type ListedFile,
  listName,
  parseWebList,
  readWebList,
  type WebFileList,
} from '../../web/index.ts';
import { configDifferences } from './config.ts';
import { Different, runEach, type ServedAnswer, ServedFiles, Unread } from './fetch.ts';
import { headerDifferences, typeDifferences } from './headers.ts';

/** Bytes of the served list. */
const maxListBytes = 262_144;
/** Bytes of the served `config.json`, which has a registry's file in it. */
const maxConfigBytes = 1_048_576;
/** Names of files in one sentence. */
const mostNames = 3;

export interface CompareOptions {
  /** Address of the served folder, with a slash at its end. */
  readonly url: URL;
  /** Folder of the built messenger. */
  readonly folder: string;
  /** PEM of an authority to trust in addition to those of the system. */
  readonly authority?: string | undefined;
  /** Seconds for everything. */
  readonly timeout: number;
}

/** What {@link compareServed} found, in sentences. Served texts in them are a stranger's. */
export interface Comparison {
  /** Version of the built messenger. */
  readonly version: string;
  /** Version that the served list names; absent if it could not be read. */
  readonly servedVersion?: string;
  /** Files that were compared. */
  readonly files: number;
  readonly differences: readonly string[];
  /** What could not be read, so that nothing is known about it. */
  readonly unread: readonly string[];
}

/**
 * Reads every file of the built list from the address, in each encoding, and compares contents, types
 * and headers; then the list and `config.json`.
 *
 * @throws Error if the folder has no list, or the authority is no PEM certificate
 */
export async function compareServed(options: CompareOptions): Promise<Comparison> {
  const { url, folder, authority, timeout } = options;
  const own = readWebList(folder);
  const signal = AbortSignal.timeout(timeout * 1_000);
  using served = new ServedFiles(url, { authority, signal });
  const found = new Findings();
  const result = () => ({ version: own.version, files: own.files.length, ...found.sentences() });
  const page = own.files.find(({ name }) => name === 'index.html');
  if (page === undefined) throw new Error(`${folder}: index.html is missing`);
  // First and alone: if nothing answers, one sentence says so.
  await found.during('the page', () => compareFile(served, { ...page, name: './' }));
  if (found.unread.size > 0) return result();
  let servedVersion: string | undefined;
  await runEach([
    () =>
      found.during(listName, async () => {
        const list = await fetchList(served);
        servedVersion = list.version;
        for (const each of listDifferences(own, list)) found.differences.add(each);
        return [];
      }),
    () => found.during('config.json', () => compareConfig(served)),
    ...own.files.map((file) => () => found.during(file.name, () => compareFile(served, file))),
  ]);
  return { ...result(), ...(servedVersion !== undefined && { servedVersion }) };
}

/** @returns what differs, in words that follow the file's name */
async function compareFile(served: ServedFiles, file: ListedFile): Promise<string[]> {
  const words = new Set<string>();
  for (const encoding of encodings) {
    const answer = await served.fetch(file.name, { maxBytes: file.bytes + 1, encoding });
    for (const each of fileDifferences(answer, file)) words.add(each);
  }
  return [...words];
}

function fileDifferences({ headers, body }: ServedAnswer, { type, sha256 }: ListedFile): string[] {
  const isSame = digestOf(body) === sha256;
  return [...(isSame ? [] : ['is another content']), ...headerDifferences(headers, type)];
}

async function compareConfig(served: ServedFiles): Promise<string[]> {
  const { headers, body } = await served.fetch('config.json', { maxBytes: maxConfigBytes });
  return [...typeDifferences(headers, 'application/json'), ...configDifferences(body)];
}

async function fetchList(served: ServedFiles): Promise<WebFileList> {
  const { body } = await served.fetch(listName, { maxBytes: maxListBytes });
  try {
    return parseWebList(Buffer.from(body).toString());
  } catch (cause) {
    throw new Different("is not the list of a messenger's files", { cause });
  }
}

function listDifferences(own: WebFileList, served: WebFileList): string[] {
  const ownNames = new Map(own.files.map((file) => [file.name, file]));
  const servedNames = new Map(served.files.map((file) => [file.name, file]));
  const extra = [...servedNames.keys()].filter((name) => !ownNames.has(name));
  const missing = [...ownNames.keys()].filter((name) => !servedNames.has(name));
  const other = [...servedNames.values()].filter(
    ({ name, sha256 }) => ownNames.has(name) && ownNames.get(name)?.sha256 !== sha256,
  );
  const says = (names: readonly string[], words: string) =>
    names.length === 0 ? [] : [`${listName} ${words} ${inShort(names)}.`];
  return [
    ...(own.version === served.version
      ? []
      : [
          `It says that it is the version ${served.version}; this one is ${own.version}: ` +
            'compare it with a build of that version (--folder).',
        ]),
    ...says(extra, 'has more files:'),
    ...says(missing, 'does not have'),
    ...says(
      other.map(({ name }) => name),
      'has another digest for',
    ),
  ];
}

function inShort(names: readonly string[]): string {
  const more = names.length - mostNames;
  const shown = names.slice(0, mostNames).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** What is found about files: one sentence for each thing, with the files that it is about. */
class Findings {
  readonly differences = new Set<string>();
  readonly unread = new Map<string, string[]>();
  readonly #different = new Map<string, string[]>();

  /** Runs the comparison of a file, and keeps what it finds, or why it could not be made. */
  async during(name: string, compare: () => Promise<readonly string[]>): Promise<void> {
    try {
      for (const words of await compare()) add(this.#different, words, name);
    } catch (error) {
      if (error instanceof Different) add(this.#different, error.message, name);
      else if (error instanceof Unread) add(this.unread, error.message, name);
      else throw error;
    }
  }

  sentences(): Pick<Comparison, 'differences' | 'unread'> {
    const unread = [...this.unread].map(([why, names]) => `${inShort(names)}: not read: ${why}.`);
    const about = [...this.#different].map(([words, names]) =>
      names.length === 1 ? `${names[0]} ${words}.` : `Each of ${inShort(names)} ${words}.`,
    );
    return { differences: [...this.differences, ...about], unread };
  }
}

function add(to: Map<string, string[]>, words: string, name: string): void {
  const names = to.get(words) ?? [];
  to.set(words, [...names, name]);
}
