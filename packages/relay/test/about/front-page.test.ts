/** What a relay serves to visitors: its page, and its methods for programs. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { methodPath, methods } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { relayCan, relayCannot } from '../../src/about/what-a-relay-sees.ts';
import { servedRelay } from '../support/served-relay.ts';

const about = {
  operator: 'The <rowing> club',
  contact: 'mailto:relay@club.example',
  terms: 'https://club.example/terms?a=1&b="2"',
  policy: '',
  version: true,
};
const software = `posthouse ${manifest.version}`;
const relay = servedRelay({ name: 'Häuschen & <b>', about });

async function fetched(path: string, from = relay) {
  const answer = await from.http().send({
    ...{ verb: 'GET', path: `/${path}` },
    headers: { accept: 'text/html,application/xhtml+xml;q=0.9' },
  });
  return {
    ...answer,
    type: answer.headers['content-type'],
    policy: String(answer.headers['content-security-policy']),
  };
}

describe('the page at the root of the address', () => {
  test('has name, operator, limits, versions and what the relay can see, with no script and no request elsewhere', async () => {
    const { status, text, type, policy } = await fetched('/');
    expect([status, type]).toEqual([200, 'text/html; charset=utf-8']);
    for (const fact of [
      '<h1>Häuschen &amp; &lt;b&gt;</h1>',
      'The &lt;rowing&gt; club',
      '<a href="mailto:relay@club.example"',
      'https://club.example/terms?a=1&amp;b=&quot;2&quot;',
      'stored for 30 days',
      software,
      relay.relayId,
      ...relayCannot,
    ]) {
      expect(text).toContain(fact);
    }
    expect(text).not.toContain('Privacy and moderation');
    expect(text).not.toMatch(/<script|src=|url\(|@import/);
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
    const digest = createHash('sha256').update(style).digest('base64');
    expect(policy).toContain(`default-src 'none'; style-src 'sha256-${digest}'`);
  });

  test('says the same of a home relay as SECURITY.md', () => {
    const security = readFileSync(new URL('../../../../SECURITY.md', import.meta.url), 'utf8');
    const [, section = ''] = /### Your home relay\n(.*?)\n### /s.exec(security) ?? [];
    const items = [...section.matchAll(/^- (.*)[;.]$/gm)].map(([, item]) => item);
    expect(items).toEqual(relayCan);
    const cells = [...section.matchAll(/^\| (.*?) +\| \[/gm)].map(([, cell]) => cell);
    expect(cells.slice(0, relayCannot.length)).toEqual(relayCannot);
  });
});

test('02 §11.2: relay.info carries what the operator says of the relay, and leaves out what is not set', async () => {
  const { result } = await (await relay.socket()).call('relay.info');
  const { policy: _, version: __, ...stated } = about;
  expect(result).toMatchObject({ ...stated, software });
  expect(Object.keys(result as object)).not.toContain('policy');
});

describe('with about.version false', () => {
  const silent = servedRelay({ about: { ...about, version: false } });

  test('02 §11.2: no stranger is told program or version', async () => {
    const { result } = await (await silent.socket()).call('relay.info');
    expect(Object.keys(result as object)).not.toContain('software');
    const paths = ['/', '/openapi.json', '/openrpc.json'].map((path) => fetched(path, silent));
    for (const { text } of await Promise.all(paths)) expect(text).not.toContain(manifest.version);
  });
});

describe('documents for programs', () => {
  test('openapi.json has each verb of each method at its path', async () => {
    const { text, type } = await fetched('/openapi.json');
    expect(type).toMatch(/^application\/json/);
    const { paths, servers } = JSON.parse(text);
    expect(servers[0].url).toBe(relay.server.https[0]);
    const listed = Object.values(methods).filter(({ http }) => http.length > 0);
    expect(Object.keys(paths).sort()).toEqual(listed.map(({ name }) => methodPath(name)).sort());
    for (const { name, http } of listed) {
      const verbs = http.map((verb) => verb.toLowerCase());
      expect(Object.keys(paths[methodPath(name)]).sort()).toEqual([...verbs].sort());
    }
  });

  test('openrpc.json has each method, with its parameters', async () => {
    const { text } = await fetched('/openrpc.json');
    const { methods: listed, servers } = JSON.parse(text);
    expect(servers[0].url).toBe(relay.server.wss[0]);
    const names: string[] = listed.map(({ name }: { name: string }) => name);
    expect(Object.keys(methods).filter((name) => !names.includes(name))).toEqual([]);
    const { params } = listed.find(({ name }: { name: string }) => name === 'auth.challenge');
    expect(params).toMatchObject([{ name: 'account', required: true }]);
  });
});
