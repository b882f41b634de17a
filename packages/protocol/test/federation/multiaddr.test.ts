import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeMultiaddr,
  encodeMultiaddr,
  formatMultiaddr,
  parseMultiaddr,
  parsePeerId,
  type TcpAddress,
} from '../../src/federation/index.ts';
import { classifyEndpoint, fromHex, hex, utf8 } from '../../src/index.ts';
import { refusal } from './decoders.ts';

const peer = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';
const peerId = parsePeerId(peer) as Uint8Array;

const forms: [string, string][] = [
  ['/ip4/192.0.2.1/tcp/4201', '04c0000201061069'],
  ['/ip4/0.0.0.0/tcp/1', '0400000000060001'],
  ['/ip6/::1/tcp/65535', `29${'00'.repeat(15)}0106ffff`],
  ['/ip6/2001:db8::7:0:1/tcp/443', '2920010db80000000000000007000000010601bb'],
  ['/ip6/::/tcp/443', `29${'00'.repeat(16)}0601bb`],
  ['/dns/relay.example/tcp/443', `350d${hex(utf8('relay.example'))}0601bb`],
  ['/dns4/relay.example/tcp/443', `360d${hex(utf8('relay.example'))}0601bb`],
  ['/dns6/relay.example/tcp/443', `370d${hex(utf8('relay.example'))}0601bb`],
  ['/dnsaddr/relay.example/tcp/443', `380d${hex(utf8('relay.example'))}0601bb`],
  [`/ip4/192.0.2.1/tcp/4201/p2p/${peer}`, `04c0000201061069a50326${hex(peerId)}`],
];

const encodeText = (text: string) => hex(encodeMultiaddr(parseMultiaddr(text) as TcpAddress));
const decodeText = (bytes: Uint8Array) => {
  const address = decodeMultiaddr(bytes);
  return address && formatMultiaddr(address);
};

describe('07 §B6: multiaddrs', () => {
  test.each(forms)('%s is %s', (text, bytes) => {
    expect(encodeText(text)).toBe(bytes);
    expect(decodeText(fromHex(bytes))).toBe(text);
  });

  test.each(forms)('%s: no prefix is an address, but the one before the Peer ID', (_text, form) => {
    const bytes = fromHex(form);
    const ends = Array.from(bytes, (_, end) => end).filter(
      (end) => decodeMultiaddr(bytes.subarray(0, end)) !== undefined,
    );
    expect(ends).toEqual(form.includes('a503') ? [8] : []);
  });

  test('an IPv6 address is formatted in its shortest form', () => {
    for (const [text, shortest] of [
      ['/ip6/2001:DB8:0:0:0:0:0:1/tcp/1', '/ip6/2001:db8::1/tcp/1'],
      ['/ip6/::ffff:192.0.2.1/tcp/1', '/ip6/::ffff:c000:201/tcp/1'],
      ['/ip6/1::/tcp/1', '/ip6/1::/tcp/1'],
    ] as const) {
      expect(decodeText(fromHex(encodeText(text)))).toBe(shortest);
    }
  });

  test('any IPv6 address comes back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (host) => {
        const bytes = Uint8Array.from([0x29, ...host, 6, 1, 2]);
        expect(encodeText(decodeText(bytes) ?? '')).toBe(hex(bytes));
      }),
    );
    fc.assert(
      fc.property(fc.ipV6(), (host) => {
        const text = decodeText(encodeMultiaddr({ family: 'ip6', host, port: 1 }));
        expect(text).toBe(`/ip6/${new URL(`https://[${host}]/`).hostname.slice(1, -1)}/tcp/1`);
      }),
    );
  });

  test('the Peer ID of a decoded address is no view of the input', () => {
    const bytes = fromHex(forms.at(-1)?.[1] ?? '');
    const address = decodeMultiaddr(bytes);
    bytes.fill(0);
    expect(address?.peerId).toEqual(peerId);
  });

  test('an address of a descriptor encodes', () => {
    const endpoint = classifyEndpoint(`/dns4/relay.example/tcp/443/p2p/${peer}`);
    if (endpoint.kind !== 'libp2p') throw new Error('expected a libp2p address');
    expect(decodeMultiaddr(encodeMultiaddr(endpoint.address))).toEqual(endpoint.address);
  });

  test.each([
    ['', 'nothing'],
    ['04c0000201', 'no port'],
    ['04c0000201060000', 'port 0'],
    ['04c000020191021069', 'UDP'],
    ['04c0000201061069bb03', 'a layer on TCP'],
    [`04c0000201061069a50324${'00'.repeat(36)}`, 'a malformed Peer ID'],
    [`04c0000201061069a50326${hex(peerId)}a202`, 'a relayed address'],
    ['061069', 'no host'],
    [`a50326${hex(peerId)}`, 'a Peer ID alone'],
    ['8400c0000201061069', 'a code that is not in shortest form'],
    ['3500061069', 'an empty name'],
    ['3502ff61061069', 'a name that is not UTF-8'],
    ['3503612f62061069', 'a name with a slash'],
    ['2a0765743001', 'a zone'],
  ])('%s is no usable address: %s', (text) => {
    expect(decodeMultiaddr(fromHex(text))).toBeUndefined();
  });

  test.each([
    '',
    'ip4/192.0.2.1/tcp/1',
    '/ip4/192.0.2.256/tcp/1',
    '/ip4/127.1/tcp/1',
    '/ip6/fe80::1%eth0/tcp/1',
    '/ip6/1::2::3/tcp/1',
    '/dns4//tcp/1',
    '/unix/a/tcp/1',
    '/toString/a/tcp/1',
    '/ip4/192.0.2.1/tcp/0',
    '/ip4/192.0.2.1/tcp/65536',
    '/ip4/192.0.2.1/tcp/01',
    '/ip4/192.0.2.1/udp/1',
    '/ip4/192.0.2.1/tcp/1/',
    '/ip4/192.0.2.1/tcp/1/ws',
    '/ip4/192.0.2.1/tcp/1/p2p/0OIl',
    `/ip4/192.0.2.1/tcp/1/p2p/${peer}/p2p-circuit`,
  ])('%j is no usable address', (text) => {
    expect(parseMultiaddr(text)).toBeUndefined();
  });

  test.each<[string, TcpAddress]>([
    ['an unknown family', { family: 'unix', host: 'a', port: 1 }],
    ['a host of another family', { family: 'ip4', host: '::1', port: 1 }],
    ['port 0', { family: 'ip4', host: '192.0.2.1', port: 0 }],
    ['port 65,536', { family: 'ip4', host: '192.0.2.1', port: 65_536 }],
    ['a fraction of a port', { family: 'ip4', host: '192.0.2.1', port: 1.5 }],
    ['no Peer ID', { family: 'ip4', host: '192.0.2.1', port: 1, peerId: new Uint8Array(3) }],
  ])('%s is not encoded', (_name, address) => {
    expect(refusal(() => encodeMultiaddr(address))).toMatch(/^address: expected/);
  });

  test('random bytes give an address that encodes, or none', () => {
    const encodings = forms.map(([, form]) => fromHex(form));
    const changed = fc
      .tuple(fc.constantFrom(...encodings), fc.nat(), fc.nat(255))
      .map(([bytes, at, byte]) => bytes.with(at % bytes.length, byte));
    let usable = 0;
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), changed), (bytes) => {
        const address = decodeMultiaddr(bytes);
        if (address === undefined) return;
        usable += 1;
        expect(hex(encodeMultiaddr(address))).toBe(hex(bytes));
      }),
      { numRuns: 2_000 },
    );
    expect(usable).toBeGreaterThan(100);
  });
});
