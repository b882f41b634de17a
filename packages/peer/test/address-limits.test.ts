import { expect, test } from 'vitest';
import { AddressLimits } from '../src/address-limits.ts';
import { addressKey, defaultPeerLimits } from '../src/index.ts';
import { ManualClock } from './support/clock.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:1:0002::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.33', '64:ff9b:0:0::/64'],
  ['1::192.0.2.33', '1:0:0:0::/64'],
])('07 §B5: the limits of address %s are those of %s', (address, key) => {
  expect(addressKey(address)).toBe(key);
});

/** Enters as often as it is allowed, at most 100 times. */
function enterAll(limits: AddressLimits, address: (index: number) => string): (() => void)[] {
  const entered: (() => void)[] = [];
  for (let index = 0; index < 100; index += 1) {
    const result = limits.enter(address(index));
    if (typeof result !== 'string') entered.push(result);
  }
  return entered;
}

test('07 §B5: four handshakes of one address are under way at once, one more after one ended', () => {
  const limits = new AddressLimits(defaultPeerLimits, new ManualClock());
  const entered = enterAll(limits, () => '192.0.2.1');
  expect(entered).toHaveLength(4);
  entered[0]?.();
  expect(enterAll(limits, () => '192.0.2.1')).toHaveLength(1);
});

test('07 §B5: 64 handshakes are under way at once in all', () => {
  const limits = new AddressLimits(defaultPeerLimits, new ManualClock());
  const entered = enterAll(limits, (index) => `192.0.2.${index}`);
  expect(entered).toHaveLength(64);
  expect(limits.pending).toBe(64);
  for (const leave of entered) leave();
  expect(limits.pending).toBe(0);
});

test('07 §B5: an address has ten connections at once and then five in a second', () => {
  const clock = new ManualClock();
  const limits = new AddressLimits(defaultPeerLimits, clock);
  const connect = () => {
    const result = limits.enter('2001:db8::1');
    if (typeof result !== 'string') result();
    return typeof result !== 'string';
  };
  const count = () => Array.from({ length: 20 }, connect).filter(Boolean).length;
  expect(count()).toBe(10);
  clock.advance(1_000);
  expect(count()).toBe(5);
  clock.advance(60_000);
  expect(count()).toBe(10);
});
