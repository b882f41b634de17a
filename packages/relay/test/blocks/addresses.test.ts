/** 02 §18: which addresses an operator can block, and which ones a block holds. */
import { BlockList, isIPv4 } from 'node:net';
import { addressKey } from '@posthouse/peer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readRange } from '../../src/blocks/address-range.ts';
import { AddressSet } from '../../src/blocks/address-set.ts';
import { addressToBlock, isWide } from '../../src/blocks/index.ts';
import { seed } from '../support/chance.ts';

const forever = Number.POSITIVE_INFINITY;

describe('what is blocked', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['192.0.2.7/32', '192.0.2.7'],
    ['192.0.2.7/24', '192.0.2.0/24'],
    ['128.0.0.0/1', '128.0.0.0/1'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9/128', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::/65', '2001:db8:1:2::/64'],
    ['2001:db8:ffff::/48', '2001:db8:ffff::/48'],
    ['2001:db8:8000::/33', '2001:db8:8000::/33'],
  ])('%s is stored as %s', (text, stored) => {
    expect(addressToBlock(text, [], [])).toBe(stored);
    expect(addressToBlock(stored, [], [])).toBe(stored);
  });

  test.each([
    '',
    'relay.example',
    '192.0.2',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.0/024',
    '::/129',
  ])('%j is no address', (text) =>
    expect(() => addressToBlock(text, [])).toThrow('is no address: give one as'),
  );

  test.each(['127.0.0.1', '127.1.2.3', '0.0.0.0/0', '::1', '::/0', '::/64'])(
    '%s has addresses of this machine itself, and is refused',
    (text) => expect(() => addressToBlock(text, [])).toThrow('of this machine itself'),
  );

  test.each(['192.0.2.7', '192.0.2.0/24', 'fd00::9', 'fd00::/8'])(
    '%s has an address of a network interface of this machine, and is refused',
    (text) =>
      expect(() => addressToBlock(text, [], ['192.0.2.7', 'fd00::2', 'fe80::1%eth0'])).toThrow(
        'of this machine itself',
      ),
  );

  test.each([
    ['192.0.0.0/7', true],
    ['192.0.0.0/8', false],
    ['2001::/18', true],
    ['2001::/19', false],
    ['2001:db8::1', false],
  ])('whether %s has very many addresses: %s', (text, expected) => {
    expect(isWide(text)).toBe(expected);
  });

  test.each([
    ['10.0.0.2', ['10.0.0.2']],
    ['10.0.0.0/8', ['192.0.2.1', '10.0.0.2']],
    ['10.0.0.7', ['10.0.0.0/24']],
    ['2001:db8:1:2::1', ['2001:db8:1:2::9']],
    ['2001:db8::/32', ['2001:db8:1:2::9/128']],
  ])('%s has a trusted proxy of %j, and is refused', (text, proxies) => {
    expect(() => addressToBlock(text, proxies)).toThrow(`the trusted proxy ${proxies.at(-1)}`);
  });

  test('a proxy of the other family, or of another network, is no reason', () => {
    expect(addressToBlock('10.0.1.0/24', ['10.0.0.0/24', '::ffff:10.0.0.1', 'fd00::/8'], [])).toBe(
      '10.0.1.0/24',
    );
  });
});

describe('what a block holds', () => {
  test('an address, until its block ends', () => {
    const set = new AddressSet();
    expect([set.isEmpty, set.has('192.0.2.7', 0)]).toEqual([true, false]);
    set.add(readRange('192.0.2.7') as never, 100);
    expect(set.isEmpty).toBe(false);
    expect([set.has('192.0.2.7', 99), set.has('192.0.2.7', 100)]).toEqual([true, false]);
    expect(set.has('192.0.2.8', 99)).toBe(false);
    expect(set.has('', 99)).toBe(false);
  });

  test('of several networks that hold an address, the one that lasts longest counts', () => {
    const set = new AddressSet();
    set.add(readRange('192.0.2.7') as never, 100);
    set.add(readRange('192.0.0.0/16') as never, forever);
    expect([set.has('192.0.2.7', 500), set.has('192.0.9.1', 500)]).toEqual([true, true]);
  });

  test('exactly the addresses that Node finds in it', () => {
    const v4 = fc.tuple(...Array.from({ length: 4 }, () => fc.constantFrom(0, 1, 128, 255)));
    const group = fc.constantFrom(0, 1, 0x8000, 0xffff);
    const v6 = fc.tuple(
      // No IPv4 address in another form.
      fc.constantFrom(1, 0x8000, 0xffff),
      ...Array.from({ length: 7 }, () => group),
    );
    const address = fc.oneof(
      v4.map((bytes) => bytes.join('.')),
      v6.map((groups) => groups.map((group) => group.toString(16)).join(':')),
    );
    const network = fc.tuple(address, fc.nat(64)).map(([of, length]) => ({
      of,
      length: isIPv4(of) ? Math.min(length, 32) : length,
    }));
    const many = fc.array(network, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(many, fc.array(address, { minLength: 8 }), (networks, asked) => {
        const set = new AddressSet();
        const oracle = new BlockList();
        for (const { of, length } of networks) {
          set.add(readRange(`${of}/${length}`) as never, forever);
          oracle.addSubnet(of, length, isIPv4(of) ? 'ipv4' : 'ipv6');
        }
        for (const one of asked) {
          const family = isIPv4(one) ? 'ipv4' : 'ipv6';
          // To Node, networks of IPv6 hold IPv4 addresses too, in their mapped form.
          const isMapped = family === 'ipv4' && networks.some(({ of }) => !isIPv4(of));
          if (!isMapped) expect(set.has(addressKey(one), 0)).toBe(oracle.check(one, family));
        }
      }),
      { seed, numRuns: 300 },
    );
  });
});
