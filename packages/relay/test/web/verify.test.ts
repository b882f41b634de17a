/** `posthouse web verify`: what an address serves is compared with what was built. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Comparison, compareServed } from '../../src/operations/served-web/compare.ts';
import { testCertificate } from '../federation/remote-relay.ts';
import { builtContents, writeMessenger } from '../support/built-messenger.ts';
import { killAll, posthouse } from '../support/command.ts';
import { ServedRelay } from '../support/served-relay.ts';

const root = mkdtempSync(join(tmpdir(), 'messenger-'));
const folder = join(root, 'built');
const other = join(root, 'other');
const caFile = join(root, 'ca.pem');
const script = 'main-ABCDEFGH.js';
afterAll(() => rmSync(root, { recursive: true }));
afterEach(killAll);

/** What a server answers, as it is about to be sent. */
interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}
type Change = (name: string, answer: Answer, request: IncomingMessage) => Answer | undefined;

let relay: ServedRelay;
let certificate: Awaited<ReturnType<typeof testCertificate>>;
/** Answers of the relay, by name and encoding: what the other server changes. */
const answers = new Map<string, Answer>();
let address: string;
let stop: () => void;
let change: Change;

async function relayed(name: string, encoding: string): Promise<Answer> {
  const key = `${name} ${encoding}`;
  const known = answers.get(key);
  if (known !== undefined) return { ...known, headers: { ...known.headers } };
  const path = `//app/${name === './' ? '' : name}`;
  const headers = { 'accept-encoding': 'identity' };
  const got = await relay.http().send({ verb: 'GET', path, headers });
  const kept = Object.entries(got.headers).filter(
    ([header]) => !/^(?:content-length|connection|keep-alive|date|transfer-encoding)$/.test(header),
  );
  const answer: Answer = {
    ...{ status: got.status, headers: Object.fromEntries(kept) as Answer['headers'] },
    body: got.text,
  };
  if (encoding === 'gzip' && got.status === 200) {
    answer.body = gzipSync(got.text);
    answer.headers['content-encoding'] = 'gzip';
  }
  answers.set(key, answer);
  return { ...answer, headers: { ...answer.headers } };
}

async function answerAs(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = (request.url ?? '').replace('/app/', '') || './';
  const answer = await relayed(name, String(request.headers['accept-encoding']));
  const changed = change(name, answer, request);
  if (changed === undefined) return;
  response.writeHead(changed.status, changed.headers).end(changed.body);
}

beforeAll(async () => {
  for (const path of [folder, other]) mkdirSync(path);
  writeMessenger(folder);
  writeMessenger(other, {
    version: '2',
    contents: { ...builtContents, 'part-HGFEDCBA.js': ['text/javascript', 'more'] },
  });
  relay = await ServedRelay.start({ web: { folder } });
  certificate = await testCertificate(['localhost', '127.0.0.1']);
  writeFileSync(caFile, `${certificate.authority}`);
  const server = createServer(certificate, (request, response) => {
    void answerAs(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `https://localhost:${(server.address() as AddressInfo).port}/app/`;
  stop = () => {
    server.close();
    server.closeAllConnections();
  };
});
afterAll(async () => {
  stop();
  await relay[Symbol.asyncDispose]();
});
beforeEach(() => {
  change = (_name, answer) => answer;
});

const compared = (timeout = 60, from = folder): Promise<Comparison> =>
  compareServed({
    ...{ url: new URL(address), folder: from, authority: certificate.authority, timeout },
  });

/** Changes the answers for one name. */
const changing =
  (of: string, make: (answer: Answer) => Answer | undefined): Change =>
  (name, answer) =>
    name === of ? make(answer) : answer;

/** Changes one header of the page. */
const header = (name: string, make: (value: string) => string | undefined): Change =>
  changing('./', ({ headers, ...answer }) => {
    const { [name]: value = '', ...rest } = headers;
    const made = make(value);
    return { ...answer, headers: made === undefined ? rest : { ...rest, [name]: made } };
  });

const policy = 'content-security-policy';
const config = (make: (value: Record<string, unknown>) => unknown) =>
  changing('config.json', (answer) => ({
    ...answer,
    body: JSON.stringify(make(JSON.parse(String(answer.body)))),
  }));

describe('posthouse web verify', () => {
  test('a relay that serves the build as it is: status 0', async () => {
    const authority = join(root, 'relay-ca.pem');
    writeFileSync(authority, relay.ca);
    const url = `https://127.0.0.1:${relay.port}/app/`;
    const flags = ['--folder', folder, '--ca', authority];
    const command = posthouse(['web', 'verify', url, ...flags, '--json']);
    expect(await command.ended).toBe(0);
    expect(JSON.parse(command.output.text)).toEqual({
      ...{ url, version: '1', servedVersion: '1', files: 2, differences: [], unread: [] },
    });
  });

  test('a server that changes a byte: status 1, and one sentence', async () => {
    change = changing(script, (answer) => ({
      ...answer,
      body: `${answer.body}`.replace('a', 'b'),
    }));
    const command = posthouse(['web', 'verify', address, '--folder', folder, '--ca', caFile]);
    expect(await command.ended).toBe(1);
    expect(command.output.text).toBe(`${script} is another content.\n`);
  });

  test('a server that cannot be reached, or is not the one of the certificate: status 4', async () => {
    const command = posthouse(['web', 'verify', address, '--folder', folder]);
    expect(await command.ended).toBe(4);
    expect(command.output.text).toMatch(/^the page: not read: .*certificate.*\n$/);
  });

  test.each([
    ['http://relay.example/app/', 'Expected https'],
    ['https://relay.example/app', 'ends in "/"'],
    ['https://relay.example/app/?a', 'ends in "/"'],
    ['https://me:secret@relay.example/app/', 'ends in "/"'],
  ])('%s is not an address for it: status 2', async (url, words) => {
    const command = posthouse(['web', 'verify', url, '--folder', folder]);
    expect(await command.ended).toBe(2);
    expect(command.output.errors).toContain(words);
  });

  test.each([
    ['an authority that is none', ['--folder', folder, '--ca', join(folder, 'index.html')], 'PEM'],
    ['a folder without a list', ['--folder', root], 'files.json'],
  ])('%s is a wrong argument, not a difference: status 2', async (_what, flags, words) => {
    const command = posthouse(['web', 'verify', address, ...flags]);
    expect(await command.ended).toBe(2);
    expect(command.output.errors).toContain(words);
  });

  test.each<[what: string, by: Change, expected: string]>([
    [
      'changes what is compressed alone',
      (name, answer, { headers }) =>
        name === script && headers['accept-encoding'] === 'gzip'
          ? { ...answer, body: gzipSync('evil()') }
          : answer,
      `${script} is another content.`,
    ],
    [
      'compresses what decodes to more than memory should hold',
      (name, answer, { headers }) =>
        name === script && headers['accept-encoding'] === 'gzip'
          ? { ...answer, body: gzipSync(Buffer.alloc(500_000)) }
          : answer,
      `${script} is another content.`,
    ],
    [
      'sends more than the file has',
      changing(script, (answer) => ({ ...answer, body: 'a'.repeat(1_000_000) })),
      `${script} is longer than 951 bytes.`,
    ],
    [
      'has not all files',
      changing(script, (answer) => ({ ...answer, status: 404 })),
      `${script} is missing.`,
    ],
    [
      'redirects',
      changing(script, () => ({ status: 302, headers: { location: '/a' }, body: '' })),
      `${script} is answered with a redirect to /a.`,
    ],
    [
      'uses an encoding that was not asked for',
      changing('./', (answer) => {
        answer.headers['content-encoding'] = 'zstd';
        return answer;
      }),
      'the page has the encoding zstd, which was not asked for.',
    ],
    ['drops the policy', header(policy, () => undefined), `the page has no header ${policy}.`],
    [
      'adds a source to a directive',
      header(policy, (value) => value.replace("script-src 'self'", '$& https://evil.example')),
      `the page has https://evil.example added to script-src in its ${policy}.`,
    ],
    [
      'repeats a directive: the first applies',
      header(policy, (value) => `script-src 'self' *; ${value}`),
      `the page has * added to script-src in its ${policy}.`,
    ],
    [
      'adds a directive that takes the place of the default one',
      header(policy, (value) => `${value}; frame-src https:`),
      `the page has frame-src, which a relay does not send, in its ${policy}.`,
    ],
    [
      'drops a directive',
      header(policy, (value) => value.replace("; frame-ancestors 'none'", '')),
      `the page has no frame-ancestors in its ${policy}.`,
    ],
    [
      'drops a header',
      header('x-content-type-options', () => undefined),
      'the page has no header x-content-type-options: nosniff.',
    ],
    [
      'has another value of a header',
      header('referrer-policy', () => 'unsafe-url'),
      'the page has the header referrer-policy: unsafe-url, not no-referrer.',
    ],
    [
      'leads the page elsewhere',
      header('refresh', () => '0; url=https://evil.example/'),
      'the page has the header refresh, which a relay does not send.',
    ],
    [
      'has the same bytes read in another character set',
      header('content-type', () => 'text/html; charset=iso-2022-jp'),
      'the page has the character set iso-2022-jp, not utf-8.',
    ],
    [
      'has a configuration that the messenger does not read',
      config(({ relayId: _, ...rest }) => rest),
      'config.json is not a configuration of the messenger.',
    ],
    [
      'shows the key of a node',
      config((value) => ({ ...value, registry: { nodes: ['https://node.example/v1/KEY'] } })),
      'config.json names a node of the chain that is not of the form https://host.',
    ],
    [
      'has a list that is none',
      changing('files.json', (answer) => ({ ...answer, body: '[]' })),
      "files.json is not the list of a messenger's files.",
    ],
  ])('a server that %s is told apart', async (_what, by, expected) => {
    change = by;
    const { differences, unread } = await compared();
    expect([differences, unread]).toEqual([[expected], []]);
  });

  test('a second policy makes a page stricter, and is no difference', async () => {
    change = header(policy, (value) => `default-src 'self', ${value}`);
    expect((await compared()).differences).toEqual([]);
  });

  test('another version is called that, with what its list has more and less', async () => {
    const { differences, servedVersion } = await compared(60, other);
    expect(servedVersion).toBe('1');
    expect(differences).toEqual([
      expect.stringMatching(/^It says that it is the version 1; this one is 2: .*--folder/),
      'files.json does not have part-HGFEDCBA.js.',
      'part-HGFEDCBA.js is missing.',
    ]);
    change = changing('files.json', (answer) => ({
      ...answer,
      body: String(answer.body).replace(script, 'evil.js'),
    }));
    expect((await compared()).differences).toEqual([
      'files.json has more files: evil.js.',
      `files.json does not have ${script}.`,
    ]);
  });

  test('a server that never answers, or fails, says nothing about its files', async () => {
    change = changing(script, () => undefined);
    expect(await compared(0.5)).toMatchObject({
      differences: [],
      unread: [`${script}: not read: there was no answer in time.`],
    });
    change = changing(script, (answer) => ({ ...answer, status: 503 }));
    expect(await compared()).toMatchObject({
      differences: [],
      unread: [`${script}: not read: it is answered with status 503.`],
    });
  });

  test('a server that limits requests is asked again after the time that it names', async () => {
    let refused = 0;
    change = changing(script, (answer) => {
      refused += 1;
      return refused > 1 ? answer : { status: 429, headers: { 'retry-after': '0' }, body: '' };
    });
    expect(await compared()).toMatchObject({ differences: [], unread: [] });
    expect(refused).toBeGreaterThan(1);
  });
});
