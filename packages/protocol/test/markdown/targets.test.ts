import { describe, expect, test } from 'vitest';
import {
  encodeBase64url,
  hashReferenceUri,
  isHashReference,
  resolveHashReference,
  targetKind,
} from '../../src/index.ts';
import { bodyTargets, checkBodyReferences } from '../../src/markdown/index.ts';
import { parseHashReference } from '../../src/messages/hash-reference.ts';
import { codeOf, fill } from '../contacts/accounts.ts';

const digest = encodeBase64url(fill(0xd0));
const uri = `ni:///sha-256;${digest}`;
const markdown = (text: string) => ({ content_type: 'text/markdown', text });
const targets = (text: string) => bodyTargets(markdown(text)).map((target) => target.uri);
const attachment = (byte: number) => ({
  uri: 'https://example.com/a',
  hash: `sha256:${encodeBase64url(fill(byte))}`,
  content_type: 'image/png',
  size: 1,
});

describe('04 §8.1: the form of a reference', () => {
  test('made from a hash, and back to its digest', () => {
    expect(hashReferenceUri(`sha256:${digest}`)).toBe(uri);
    expect(parseHashReference(uri)).toEqual(fill(0xd0));
  });

  test.each([
    `NI:///sha-256;${digest}`,
    `ni:///%73ha-256;${digest}`,
    `ni:///sha%2D256;${digest}`,
    `ni:///sha-256;%${digest.charCodeAt(0).toString(16)}${digest.slice(1)}`,
  ])('%s is the same reference', (text) => {
    expect(parseHashReference(text)).toEqual(fill(0xd0));
    expect(isHashReference(text)).toBe(true);
  });

  test.each([
    ['another scheme', `nih:///sha-256;${digest}`],
    ['no authority marks', `ni:/sha-256;${digest}`],
    ['relative', `/sha-256;${digest}`],
    ['an authority', `ni://example.com/sha-256;${digest}`],
    ['a path in front', `ni:////sha-256;${digest}`],
    ['a path after it', `${uri}/`],
    ['a query', `${uri}?ct=a`],
    ['an empty query', `${uri}?`],
    ['a fragment', `${uri}#a`],
    ['an empty fragment', `${uri}#`],
    ['another algorithm', `ni:///sha-512;${digest}`],
    ['a truncated algorithm', `ni:///sha-256-128;${digest}`],
    ['an uppercase algorithm', `ni:///SHA-256;${digest}`],
    ['an encoded uppercase letter', `ni:///%53ha-256;${digest}`],
    ['no algorithm', `ni:///;${digest}`],
    ['no digest', 'ni:///sha-256;'],
    ['no separator', `ni:///sha-256${digest}`],
    ['an encoded separator', `ni:///sha-256%3B${digest}`],
    ['an encoded separator more', `${uri}%3b`],
    ['two separators', `ni:///sha-256;;${digest}`],
    ['a short digest', uri.slice(0, -1)],
    ['a long digest', `${uri}A`],
    ['pad bits', `${uri.slice(0, -1)}1`],
    ['padding', `${uri}=`],
    ['double encoding', `ni:///sha-256;%2530${digest.slice(1)}`],
    ['broken encoding', `ni:///sha-256;%3${digest.slice(1)}`],
    ['encoding of invalid UTF-8', `ni:///sha-256;%ff${digest.slice(1)}`],
    ['white space', ` ${uri}`],
    ['a line feed', `${uri}\n`],
  ])('%s is refused', (_name, text) => {
    expect(parseHashReference(text)).toBeUndefined();
    const list = [attachment(0xd0)];
    expect(resolveHashReference(text, list)).toEqual({ status: 'invalid_reference' });
  });
});

describe('04 §8.1: resolution among the message’s own attachments', () => {
  test('by digest, at any index', () => {
    const list = [attachment(1), attachment(0xd0)];
    expect(resolveHashReference(uri, list)).toEqual({ status: 'resolved', index: 1 });
    expect(resolveHashReference(uri, [attachment(1)])).toEqual({ status: 'unresolved' });
    expect(resolveHashReference(uri, [])).toEqual({ status: 'unresolved' });
  });

  test('a list that is no list of attachments resolves nothing', () => {
    const status = 'invalid_attachments';
    expect(resolveHashReference(uri, [attachment(0xd0), attachment(0xd0)])).toEqual({ status });
    expect(resolveHashReference(uri, [null])).toEqual({ status });
  });
});

describe('04 §8.1: targets of CommonMark bodies', () => {
  test.each([
    ['inline', `[a](${uri}) ![b](${uri} "title")`, [uri, uri]],
    ['in angle brackets', `[a](<${uri}>)`, [uri]],
    ['autolink', `<${uri}>`, [uri]],
    ['reference style', `[a][r] [r][] [r]\n\n[r]: ${uri}`, [uri, uri, uri]],
    ['definition before use, first one counts', `[r]: ${uri}\n[R]: ni:///x\n\n![R]`, [uri]],
    ['definition without use', `[r]: ${uri}`, []],
    ['use without definition', '[a][r]', []],
    ['image in a link', `[![a](ni:///1)](ni:///2)`, ['ni:///2', 'ni:///1']],
    ['link in an image description', `![a [b](ni:///1)](ni:///2)`, ['ni:///2']],
    ['in quotes and lists', `> - [a](${uri})\n>   1. ![b](${uri})`, [uri, uri]],
    ['in headings and emphasis', `# *[a](${uri})*\n\n**![b](${uri})**`, [uri, uri]],
    ['inline code', `\`[a](${uri})\``, []],
    ['fenced code', `~~~\n[a](${uri})\n~~~`, []],
    ['indented code', `    [a](${uri})`, []],
    ['escaped', `\\[a](${uri}) !\\[b](${uri})`, []],
    ['raw HTML', `<a href="${uri}">x</a>`, []],
    ['HTML block', `<div>\n[a](${uri})\n</div>`, []],
    ['bare text', uri, []],
    ['escapes and references of the source are decoded', '[a](ni:///x\\;y&amp;z)', ['ni:///x;y&z']],
    ['percent-encoding stays', '[a](ni:///%GG%2f%C3)', ['ni:///%GG%2f%C3']],
    [
      'other schemes too',
      '[a](javascript:alert%281%29) [b](/x)',
      ['javascript:alert%281%29', '/x'],
    ],
    ['an empty target', '[a]()', ['']],
  ])('%s', (_name, text, expected) => {
    expect(targets(text)).toEqual(expected);
  });

  test('other formats have none', () => {
    for (const type of ['text/plain', 'text/html', 'text/markdown; variant=GFM']) {
      expect(bodyTargets({ content_type: type, text: `[a](${uri})` })).toEqual([]);
    }
  });

  test('kinds, in order of appearance', () => {
    expect(bodyTargets(markdown('![a](x) [b](y)'))).toEqual([
      { kind: 'image', uri: 'x' },
      { kind: 'link', uri: 'y' },
    ]);
  });

  test('a name every object has is no definition', () => {
    expect(targets('[constructor] [__proto__] [toString][]')).toEqual([]);
  });

  // Each of these takes minutes with one parser or another; the time limit of a test is one.
  test.each([
    ['quotes', '>'],
    ['links in links', '[a](b'],
    ['emphasis', '**a_'],
    ['brackets', '['],
    ['images', '![a]('],
    ['lists', '- > '],
  ])('hostile source: 190 kB of %s are read in time', (_name, part) => {
    expect(targets(part.repeat(190_000 / part.length))).toEqual([]);
  });
});

describe('04 §8.1: before sending', () => {
  const check = (text: string, list: readonly unknown[]) =>
    codeOf(() => checkBodyReferences(markdown(text), list));

  test('every reference finds its attachment; others may go unreferenced', () => {
    const list = [attachment(0xd0), attachment(1)];
    expect(check(`[a](${uri}) ![b](${uri}) [c](https://example.com/)`, list)).toBeUndefined();
    expect(check('no references', [])).toBeUndefined();
    expect(check(`\`[a](${uri})\``, [])).toBeUndefined();
  });

  test('a missing attachment or a malformed reference is refused', () => {
    expect(check(`[a](${uri})`, [attachment(1)])).toBe('bad_request');
    expect(check(`[a](${uri}?)`, [attachment(0xd0)])).toBe('bad_request');
    expect(check('[a](Ni:x)', [attachment(0xd0)])).toBe('bad_request');
  });
});

describe('04 §8: what may be followed', () => {
  test.each([
    ['https://example.com/', 'web'],
    ['HTTP://example.com/', 'web'],
    ['mailto:a@example.com', 'web'],
    [uri, 'attachment'],
    ['NI:broken', 'attachment'],
    ['javascript:alert(1)', 'blocked'],
    ['JavaScript:alert(1)', 'blocked'],
    ['java\nscript:alert(1)', 'blocked'],
    ['data:text/html,x', 'blocked'],
    ['vbscript:x', 'blocked'],
    ['file:///etc/passwd', 'blocked'],
    ['//example.com/', 'blocked'],
    ['/relative', 'blocked'],
    ['https:example.com', 'blocked'],
    ['https://example.com/ x', 'blocked'],
    ['\u0001https://example.com/', 'blocked'],
    ['', 'blocked'],
  ] as const)('%j is %s', (target, kind) => {
    expect(targetKind(target)).toBe(kind);
  });
});
