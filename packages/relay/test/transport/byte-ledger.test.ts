import { beforeEach, expect, test } from 'vitest';
import { ByteLedger, type ByteOwner } from '../../src/transport/byte-ledger.ts';

/** 02 §18: bytes in memory by owner, and which of them are given up. */

const address = (id: string): ByteOwner => ({ kind: 'address', id });
const account = (id: string): ByteOwner => ({ kind: 'account', id });

let ended: string[];
beforeEach(() => {
  ended = [];
});

function ledger(evict: 'grown' | 'largest', limits = {}) {
  const defaults = { ofAddress: 100, ofAccount: 100, ofStrangers: 150, total: 200 };
  const ledger = new ByteLedger({ ...defaults, ...limits, evict });
  const open = (owner: ByteOwner, name: string) => ledger.open(owner, () => ended.push(name));
  return { ledger, open };
}

test('the hold that grows over the limit of its owner is refused and empty', () => {
  const { ledger: of, open } = ledger('grown');
  const [first, second] = [open(address('a'), 'first'), open(address('a'), 'second')];
  expect(first.add(60)).toBe(true);
  expect(of.hasRoom(address('a'), 40)).toBe(true);
  expect(of.hasRoom(address('a'), 41)).toBe(false);
  expect(second.add(41)).toBe(false);
  expect([first.bytes, second.bytes, of.total]).toEqual([60, 0, 60]);
  expect(second.add(40)).toBe(true);
  expect(ended).toEqual([]);
});

test('holds that yield end before the one that grows, the largest first, and take no room', () => {
  const { ledger: of, open } = ledger('grown');
  const yielding = (name: string) => of.openYielding(address('a'), () => ended.push(name));
  const [small, large, request] = [
    yielding('small'),
    yielding('large'),
    open(address('a'), 'request'),
  ];
  small.add(40);
  large.add(50);
  expect(of.hasRoom(address('a'), 100)).toBe(true);
  expect(request.add(20)).toBe(true);
  expect(ended).toEqual(['large']);
  expect(request.add(80)).toBe(true);
  expect(ended).toEqual(['large', 'small']);
  expect(small.add(1)).toBe(false);
  expect(request.add(1)).toBe(false);
  expect(of.total).toBe(0);
});

test('an address and an account of one name are two owners', () => {
  const { open } = ledger('grown');
  expect(open(address('a'), '').add(100)).toBe(true);
  expect(open(account('a'), '').add(100)).toBe(true);
});

test('with `largest`, the largest hold of the owner ends instead of the one that grows', () => {
  const { ledger: of, open } = ledger('largest');
  const [small, large] = [open(account('a'), 'small'), open(account('a'), 'large')];
  large.add(90);
  expect(small.add(20)).toBe(true);
  expect(ended).toEqual(['large']);
  expect([small.bytes, large.bytes, of.total]).toEqual([20, 0, 20]);
  expect(small.add(81)).toBe(false);
  expect(of.total).toBe(0);
});

test('if strangers hold too much, the address with most gives up its largest hold', () => {
  const { open } = ledger('grown');
  open(address('a'), 'a small').add(10);
  open(address('a'), 'a large').add(80);
  open(account('c'), 'c').add(30);
  const newest = open(address('b'), 'b');
  expect(newest.add(61)).toBe(true);
  expect(ended).toEqual(['a large']);
});

test('if the process holds too much, the owner with most gives up its largest hold', () => {
  const { ledger: of, open } = ledger('grown');
  open(account('a'), 'a').add(99);
  open(account('b'), 'b').add(98);
  expect(open(address('c'), 'c').add(5)).toBe(true);
  expect(ended).toEqual(['a']);
  expect(of.total).toBe(103);
});

test('what is released or ended is counted no more, and never twice', () => {
  const { ledger: of, open } = ledger('grown');
  const hold = open(address('a'), '');
  hold.add(100);
  hold.release(30);
  expect(of.hasRoom(address('a'), 30)).toBe(true);
  hold[Symbol.dispose]();
  hold[Symbol.dispose]();
  hold.release(10);
  expect(of.total).toBe(0);
  expect(of.hasRoom(address('a'), 100)).toBe(true);
});

test('bytes that move to another owner count there', () => {
  const { ledger: of, open } = ledger('grown');
  const hold = open(address('a'), '');
  hold.add(100);
  expect(hold.moveTo(account('c'))).toBe(true);
  expect(of.hasRoom(address('a'), 100)).toBe(true);
  expect(of.hasRoom(account('c'), 1)).toBe(false);
});
