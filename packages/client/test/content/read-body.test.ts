import { encodeBase64url, hashReferenceUri } from '@posthouse/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seed } from '../../../relay/test/support/chance.ts';
import { bodyLimits, readBody, visibleName, visibleText } from '../../src/content/index.ts';
import { faultsOf } from './check-tree.ts';
import { hostileBodies } from './hostile-bodies.ts';

const attachment = (byte: number) => ({
  uri: 'https://files.example/a',
  hash: `sha256:${encodeBase64url(new Uint8Array(32).fill(byte))}`,
  content_type: 'image/png',
  size: 1,
});
const reference = (byte: number) => hashReferenceUri(attachment(byte).hash);
const markdown = (text: string, attachments: readonly unknown[] = []) =>
  readBody({ content_type: 'text/markdown', text }, attachments);
const inline = (text: string, attachments: readonly unknown[] = []) => {
  const [block] = markdown(text, attachments).blocks;
  return block?.kind === 'paragraph' ? block.children : undefined;
};
const a = [{ kind: 'text', text: 'a' }];

describe('04 §8, 06 §10.3: what a body shows', () => {
  test('plain text and unknown formats are one block with their source', () => {
    const text = '*a* <b>\r\n[x](https://example.com)';
    const blocks = [{ kind: 'plain', text: '*a* <b>\n[x](https://example.com)' }];
    expect(readBody({ content_type: 'text/plain', text })).toEqual({ format: 'plain', blocks });
    for (const content_type of ['text/html', 'text/markdown; variant=GFM', 'x']) {
      expect(readBody({ content_type, text })).toEqual({ format: 'unknown', blocks });
    }
  });

  test('Markdown is a tree of plain data', () => {
    const tree = markdown('# *a*\n\n> 3. `b`\n\n~~~js x\nc\n~~~\n\n***\n\n<div>');
    expect(JSON.parse(JSON.stringify(tree))).toEqual({
      format: 'markdown',
      blocks: [
        { kind: 'heading', level: 1, children: [{ kind: 'emphasis', children: a }] },
        {
          kind: 'quote',
          children: [
            {
              kind: 'list',
              start: 3,
              tight: true,
              items: [[{ kind: 'paragraph', children: [{ kind: 'code', text: 'b' }] }]],
            },
          ],
        },
        { kind: 'code_block', text: 'c\n', language: 'js' },
        { kind: 'rule' },
        { kind: 'source_block', text: '<div>' },
      ],
    });
  });

  test.each([
    ['https://Example.com', 'https://example.com/', 'example.com'],
    ['HTTP://example.com:8080/a?b#c', 'http://example.com:8080/a?b#c', 'example.com:8080'],
    ['https://bänk.example/ü', 'https://xn--bnk-qla.example/%C3%BC', 'xn--bnk-qla.example'],
    ['https://bаnk.example/', 'https://xn--bnk-6cd.example/', 'xn--bnk-6cd.example'],
    ['https://a。example/', 'https://a.example/', 'a.example'],
    ['https://a/%E2%80%AE&#x202E;', 'https://a/%E2%80%AE%E2%80%AE', 'a'],
    ['mailto:a@example.com', 'mailto:a@example.com', 'example.com'],
    ['mailto:a@example.com?attach=/x', 'mailto:a@example.com', 'example.com'],
  ])('a link to %s has the host that is contacted', (uri, url, host) => {
    expect(inline(`[a](${uri})`)).toEqual([{ kind: 'link', url, host, image: false, children: a }]);
    expect(inline(`![a](${uri})`)).toEqual([{ kind: 'link', url, host, image: true, children: a }]);
  });

  test.each([
    ...['javascript:x', 'data:text/html,x', 'file:///x', '/x', '//x', 'https:x', 'tel:1', ''],
    ...[
      'https://a@b/',
      'https://a:b@c/',
      'https://a\\\\@b/',
      'https://[',
      'mailto:a',
      'mailto:é@b',
    ],
    `https://a/${'a'.repeat(8192)}`,
  ])('04 §8: a target of another scheme or form is shown and leads nowhere: %j', (uri) => {
    const target = uri.replace('\\\\', '\\');
    const blocked = { kind: 'blocked', reason: 'unsafe', target, image: false, children: a };
    expect(inline(`[a](${uri})`)).toEqual([blocked]);
  });

  test('04 §8.1: references lead to the own attachments only', () => {
    const list = [attachment(1), attachment(2)];
    const found = { kind: 'attachment', index: 1, image: true, children: a };
    expect(inline(`![a](${reference(2)})`, list)).toEqual([found]);
    expect(inline(`[a](${reference(2)})`, list)).toEqual([{ ...found, image: false }]);
    for (const [uri, given] of [
      [reference(3), list],
      [`${reference(2)}?`, list],
      [reference(1), []],
      [reference(1), [attachment(1), attachment(1)]],
    ] as const) {
      const blocked = {
        kind: 'blocked',
        reason: 'unresolved',
        target: uri,
        image: true,
        children: a,
      };
      expect(inline(`![a](${uri})`, given)).toEqual([blocked]);
    }
  });

  test('an image inside a link is its description, unless it is an own attachment', () => {
    const link = { kind: 'link', url: 'https://b/', host: 'b', image: false };
    expect(inline('[![a](https://c/)](https://b/)')).toEqual([{ ...link, children: a }]);
    const shown = [{ kind: 'attachment', index: 0, image: true, children: a }];
    const text = `[![a](${reference(1)})](https://b/)`;
    expect(inline(text, [attachment(1)])).toEqual([{ ...link, children: shown }]);
  });
});

describe('bounds of a tree', () => {
  const tooLarge = (text: string) => ({
    format: 'too_large',
    blocks: [{ kind: 'plain', text: visibleText(text) }],
  });
  const { sourceLength, marks, nodes } = bodyLimits;

  test('source up to 65,536 characters is Markdown; all of a longer one is shown', () => {
    expect(markdown('a'.repeat(sourceLength)).format).toBe('markdown');
    const long = `*${'a'.repeat(sourceLength)}`;
    expect(markdown(long)).toEqual(tooLarge(long));
  });

  test('so is source with up to 8,192 marks', () => {
    expect(markdown('\\_'.repeat(marks / 2)).format).toBe('markdown');
    const more = `${'\\_'.repeat(marks / 2)}_`;
    expect(markdown(more)).toEqual(tooLarge(more));
  });

  test('so is a tree of up to 16,384 nodes', () => {
    expect(markdown('a\n\n'.repeat(nodes / 2)).format).toBe('markdown');
    const more = 'a\n\n'.repeat(nodes / 2 + 1);
    expect(markdown(more)).toEqual(tooLarge(more));
  });

  test('so is what is nested up to the depth that the parser reads', () => {
    expect(markdown(`${'>'.repeat(19)}a`).format).toBe('markdown');
    expect(markdown(`${'>'.repeat(20)}a`)).toEqual(tooLarge(`${'>'.repeat(20)}a`));
    expect(markdown(`${'*a **b '.repeat(14)}${'c** d*'.repeat(14)}`).format).toBe('markdown');
    const deep = `${'*a **b '.repeat(17)}${'c** d*'.repeat(17)}`;
    expect(markdown(deep)).toEqual(tooLarge(deep));
  });
});

describe('04 §8: hostile bodies', () => {
  test('are at least 200', () => {
    expect(Object.values(hostileBodies).flat().length).toBeGreaterThanOrEqual(200);
  });

  test.each(Object.keys(hostileBodies))('%s: no node outside the closed tree', (kind) => {
    for (const text of hostileBodies[kind] ?? []) {
      const tree = markdown(text, [attachment(1)]);
      expect.soft(faultsOf(tree, 1), text.slice(0, 60)).toEqual([]);
      const plain = readBody({ content_type: 'text/plain', text });
      expect.soft(faultsOf(plain, 0), text.slice(0, 60)).toEqual([]);
    }
  });

  test('nor does any sequence of pieces of Markdown', () => {
    const pieces = Object.entries(hostileBodies)
      .filter(([kind]) => kind !== 'nesting and size')
      .flatMap(([, bodies]) => bodies);
    const marks = [...'[]()<>*_`!#&:;~-+>\\\n\t 1.a"\u202e\u0000', '    ', '\n\n', reference(1)];
    const piece = fc.oneof(fc.constantFrom(...marks), fc.constantFrom(...pieces), fc.string());
    const source = fc.array(piece, { maxLength: 40 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(source, (text) => {
        expect(faultsOf(markdown(text, [attachment(1)]), 1)).toEqual([]);
      }),
      { seed, numRuns: 500 },
    );
  });
});

describe('names and texts of strangers', () => {
  test.each([
    ['ann\u202Egnp.exe', 'ann[U+202E]gnp.exe'],
    ['a\u200Bb\uFEFFc\u00ADd\u2060e', 'a[U+200B]b[U+FEFF]c[U+00AD]d[U+2060]e'],
    ['a\u200Db', 'a[U+200D]b'],
    ['a\nb\tc\u0000d', 'a[U+000A]b[U+0009]c[U+0000]d'],
    ['a\u00A0b\u3000c\u2800d', 'a[U+00A0]b[U+3000]c[U+2800]d'],
    ['\u3164', '[U+3164]'],
    ['a\u{E0061}b', 'a[U+E0061]b'],
    ['a\uFE0Fb', 'a[U+FE0F]b'],
    ['\u200Fann', '[U+200F]ann'],
    ['a\uD800b', 'a[U+D800]b'],
  ])('in a name, what is not seen is made visible: %j', (name, shown) => {
    expect(visibleName(name)).toBe(shown);
  });

  test.each([
    ...['Ann O’Neil-Smith 2', 'Łukasz', 'Αθηνά', '王小明', 'محمد', 'שרה', 'می\u200Cخواهم'],
    ...['क्\u200Dष', '👩🏽\u200D🚀', '❤️', '👨\u200D👩\u200D👧', '1️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇩🇪', 'e\u0301'],
  ])('a name that is written normally stays: %s', (name) => {
    expect(visibleName(name)).toBe(name);
  });

  test('in a text, line feeds, tabs and marks of direction stay; what reorders it does not', () => {
    expect(visibleText('a\r\nb\tc\u200F\u200E')).toBe('a\nb\tc\u200F\u200E');
    expect(visibleText('a\u202Eb\u2066c\u0007')).toBe('a[U+202E]b[U+2066]c[U+0007]');
  });
});
