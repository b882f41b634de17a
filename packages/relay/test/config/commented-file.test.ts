import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError, commentedConfig, loadConfig, needsRestart } from '../../src/config/index.ts';
import { plainJson } from '../../src/config/plain-json.ts';
import { settings } from '../../src/config/settings.ts';
import { temporaryFolder } from '../support/folder.ts';

const network = `neo:1:0x${'12'.repeat(20)}`;

/** Loads a text as a configuration file. */
function load(text: string) {
  using folder = temporaryFolder();
  const file = join(folder.path, 'relay.json');
  writeFileSync(file, text);
  return loadConfig({ file, purpose: 'keys' });
}

test('the file of `posthouse init` sets what was chosen and nothing else', () => {
  const values = { network, name: 'a // b, }', 'public.https': ['https://a.example/svc/v1'] };
  const { config, sources } = load(commentedConfig(values));
  expect(config).toMatchObject({
    network,
    name: 'a // b, }',
    public: { https: values['public.https'] },
  });
  const fromFile = [...sources]
    .filter(([, source]) => source.startsWith('file '))
    .map(([path]) => path);
  expect(fromFile.sort()).toEqual(Object.keys(values).sort());
});

test('the file names every setting once, with its meaning, default and variable', () => {
  const text = commentedConfig({ network });
  // Without the comment marks before members, each setting is there with its default.
  const { config, sources } = load(text.replace(/^( +)\/\/ (?=")/gm, '$1'));
  expect(config).toEqual(load(`{ "network": "${network}" }`).config);
  expect([...sources.values()].every((source) => source.startsWith('file '))).toBe(true);
  const comments = text.replace(/\n *\/\/ (?!")/g, ' ');
  for (const { path, meaning, variable } of settings) {
    expect([path, comments.split(`. ${variable}\n`).length - 1]).toEqual([path, 1]);
    expect([path, comments.includes(meaning)]).toEqual([path, true]);
  }
  expect(text.split('\n').filter((line) => line.length > 100 && !line.includes('": '))).toEqual([]);
});

test('the file says of each setting whether SIGHUP is enough', () => {
  const comments = commentedConfig({ network }).replace(/\n *\/\/ (?!")/g, ' ');
  for (const { path, variable } of settings) {
    const says = comments.includes(`; needs a restart. ${variable}\n`);
    expect([path, says]).toEqual([path, needsRestart(path)]);
  }
});

test.each([
  ['{ "a": 1, // b\n}', { a: 1 }],
  ['// a\n{ "a": "http://b", "c": [1, 2,], }', { a: 'http://b', c: [1, 2] }],
  ['{ "a": "\\"//,}", // "b": 1,\n // c\n }', { a: '"//,}' }],
  ['{ "a": 1 }// end', { a: 1 }],
])('comments and a last comma are no part of %j', (text, value) => {
  expect(JSON.parse(plainJson(text))).toEqual(value);
  expect(plainJson(text)).toHaveLength(text.length);
});

test.each(['{ "a": 1 / 2 }', '{ "a" "b" }', '{,, }', '/* a */ {}', '{ "a": "// }'])(
  '%j is not a configuration',
  (text) => {
    expect(() => load(text)).toThrow(ConfigError);
  },
);
