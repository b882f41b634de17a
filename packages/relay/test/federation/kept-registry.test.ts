import { type Registry, RegistryError, type RelayEntry } from '@posthouse/protocol';
import { pino } from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  KeptRegistry,
  type RegistryKind,
  registryStatusOf,
} from '../../src/federation/registry/kept-registry.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { countTurns } from '../support/full-turns.ts';

const id = (digit: string) => `0x${digit.repeat(40)}`;
const entry = (digit: string, status: RelayEntry['status'] = 'active'): RelayEntry => ({
  relay_id: id(digit),
  endpoint: 'https://relay.example/svc/v1',
  status,
  updated_at: 1,
});

/** A registry as a node of a chain would be: it counts its reads and may be out of reach. */
class CountedRegistry implements Registry {
  entries: RelayEntry[] = [];
  isReachable = true;
  reads = 0;
  listings = 0;

  async getRelay(relayId: string): Promise<RelayEntry | undefined> {
    this.reads += 1;
    if (!this.isReachable) throw new Error('out of reach');
    return this.entries.find(({ relay_id }) => relay_id === relayId);
  }

  async *listRelays(): AsyncIterable<RelayEntry> {
    this.listings += 1;
    if (!this.isReachable) throw new Error('out of reach');
    yield* this.entries;
  }
}

let clock: ManualClock;
let source: CountedRegistry;
let metrics: Metrics;
const kept = (limits: Partial<RelayLimits> = {}, kind: RegistryKind = {}) =>
  new KeptRegistry(
    source,
    {
      clock,
      metrics,
      limits: { ...defaultLimits, ...limits },
      log: pino({ level: 'silent' }),
    },
    kind,
  );
const stranger = '192.0.2.1';

beforeEach(() => {
  clock = new ManualClock();
  source = new CountedRegistry();
  metrics = new Metrics();
});

test('07 §A6: a registry that hangs is as one that cannot be read', async () => {
  const registry = kept();
  const never = new Promise<never>(() => {});
  source.getRelay = () => never;
  source.listRelays = async function* () {
    yield await never;
  };
  const current = registry.current(id('1'));
  const refreshed = registry.refresh();
  clock.advance(10);
  await expect(current).rejects.toMatchObject({ check: 'registry_unavailable' });
  expect(metrics.value('registry_lost')).toBe(0);
  clock.advance(50);
  expect(await refreshed).toBe(false);
  expect(metrics.value('registry_lost')).toBe(1);
});

describe('07 §B4: the current record', () => {
  test('is read once a minute, also by many at once', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    const all = await Promise.all([1, 2, 3].map(() => registry.current(id('1'))));
    expect(all).toEqual([entry('1'), entry('1'), entry('1')]);
    clock.advance(59);
    source.entries = [entry('1', 'suspended')];
    expect((await registry.current(id('1'), stranger))?.status).toBe('active');
    expect(source.reads).toBe(1);
    clock.advance(1);
    expect((await registry.current(id('1'), stranger))?.status).toBe('suspended');
    expect(source.reads).toBe(2);
  });

  test('comes from a reading of the whole registry, if that is younger', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    expect(source.reads).toBe(0);
  });

  test('of a relay that the reading lacks is read once: it may have been entered since', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    source.entries = [entry('1'), entry('2')];
    expect(await registry.current(id('2'), stranger)).toEqual(entry('2'));
    clock.advance(1);
    expect(await registry.current(id('3'), stranger)).toBeUndefined();
    clock.advance(1);
    expect(await registry.current(id('3'), stranger)).toBeUndefined();
    expect(source.reads).toBe(2);
  });

  test('is read again after a failed check', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    registry.expire(id('1'));
    source.entries = [entry('1', 'disabled')];
    expect(await registry.current(id('1'))).toMatchObject({ status: 'disabled' });
    expect(registry.peek(id('1'))).toMatchObject({ status: 'disabled' });
  });

  test('is read again after the clock was set back', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    clock.advance(-3_600);
    source.entries = [entry('1', 'suspended')];
    expect(await registry.current(id('1'))).toMatchObject({ status: 'suspended' });
  });

  test('of another relay than asked for is no record', async () => {
    source.getRelay = () => Promise.resolve(entry('2'));
    await expect(kept().current(id('1'))).rejects.toMatchObject({ check: 'registry_unavailable' });
  });

  test('that is malformed is no record, and hides no other', async () => {
    const malformed = { ...entry('1'), endpoint: 'http://relay.example' };
    source.entries = [malformed, entry('2')];
    const registry = kept();
    await registry.refresh();
    expect(registry.entries()).toEqual([entry('2')]);
    clock.advance(60);
    expect(await registry.current(id('1'))).toBeUndefined();
  });

  test('07 §A6: that became malformed replaces an earlier one, and pauses no reads', async () => {
    source.entries = [entry('1'), entry('2')];
    const registry = kept();
    await registry.refresh();
    clock.advance(60);
    const { getRelay } = source;
    source.getRelay = (relayId) =>
      relayId === id('1')
        ? Promise.reject(new RegistryError('invalid_record', 'it is malformed'))
        : getRelay.call(source, relayId);
    source.entries = [entry('2', 'suspended')];
    expect(await registry.current(id('1'), stranger)).toBeUndefined();
    expect(await registry.current(id('2'), 'another')).toMatchObject({ status: 'suspended' });
  });
});

describe('07 §B5: a reading of the whole registry', () => {
  test('a relay that one reading has twice is not listed, until a later reading', async () => {
    const moved = { ...entry('1'), endpoint: 'https://other.example/svc/v1' };
    source.entries = [entry('1'), entry('2'), moved];
    const registry = kept();
    await registry.refresh();
    expect(registry.activeRelays()).toEqual([id('2')]);
    expect(await registry.current(id('1'))).toBeUndefined();
    expect(registry.peek(id('1'))).toBeUndefined();
    source.entries = [entry('1'), entry('2')];
    await registry.refresh();
    expect(registry.activeRelays()).toEqual([id('1'), id('2')]);
  });

  test('has active relays as candidates, not disabled and suspended ones', async () => {
    source.entries = [entry('1'), entry('2', 'disabled'), entry('3', 'suspended')];
    const registry = kept();
    await registry.refresh();
    expect(registry.activeRelays()).toEqual([id('1')]);
    expect(registry.entries()).toEqual(source.entries);
  });

  test('ends at the limit, and a relay past it is asked for by itself', async () => {
    source.entries = ['1', '2', '3'].map((digit) => entry(digit));
    const registry = kept({ federationRegistryRelays: 2 });
    await registry.refresh();
    expect(registry.isComplete).toBe(false);
    expect(registry.entries()).toEqual([entry('1'), entry('2')]);
    expect(await registry.current(id('3'), stranger)).toEqual(entry('3'));
    expect(registry.activeRelays()).toEqual([id('1'), id('2'), id('3')]);
    const exact = kept({ federationRegistryRelays: 3 });
    await exact.refresh();
    expect(exact.isComplete).toBe(true);
  });

  test('of 10,000 relays is taken over in many turns, and searched again only after a change', async () => {
    const relayId = (index: number) => `0x${index.toString(16).padStart(40, '0')}`;
    source.entries = Array.from({ length: 10_000 }, (_, index) => ({
      ...entry('1'),
      relay_id: relayId(index),
    }));
    const registry = kept();
    using turns = countTurns();
    await registry.refresh();
    expect(turns.count).toBeGreaterThan(4);
    const active = registry.activeRelays();
    expect(active).toHaveLength(10_000);
    expect(registry.activeRelays()).toBe(active);
    registry.expire(relayId(0));
    source.entries[0] = { ...entry('1', 'suspended'), relay_id: relayId(0) };
    await registry.current(relayId(0));
    expect(registry.activeRelays()).toHaveLength(9_999);
  });

  test('that ends after a later one began and ended is not taken over', async () => {
    const registry = kept();
    const held = Promise.withResolvers<void>();
    const listRelays = source.listRelays.bind(source);
    source.listRelays = async function* () {
      yield entry('1');
      await held.promise;
    };
    const before = registry.refresh();
    source.listRelays = listRelays;
    source.entries = [entry('1', 'suspended')];
    expect(await registry.refresh()).toBe(true);
    held.resolve();
    expect(await before).toBe(true);
    expect(registry.activeRelays()).toEqual([]);
    expect(registry.entries()).toEqual([entry('1', 'suspended')]);
  });

  test('replaces what single reads knew before', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.current(id('1'));
    source.entries = [];
    await registry.refresh();
    expect(registry.peek(id('1'))).toBeUndefined();
  });
});

describe('while the registry cannot be read', () => {
  test('a relay is admitted by an answer of ten minutes, by no older one', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    source.isReachable = false;
    clock.advance(599);
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    await expect(registry.current(id('2'), 'another')).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
    clock.advance(1);
    await expect(registry.current(id('1'), stranger)).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
    expect(registry.peek(id('1'))).toEqual(entry('1'));
    expect(registry.ageOf(id('1'))).toBe(600);
  });

  test('a known relay does not wait for it: it is read again after 30 seconds', async () => {
    source.entries = [entry('1')];
    const registry = kept();
    await registry.refresh();
    source.isReachable = false;
    clock.advance(60);
    for (const seconds of [0, 29, 1]) {
      clock.advance(seconds);
      expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    }
    expect(source.reads).toBe(2);
    source.isReachable = true;
    source.entries = [entry('1', 'suspended')];
    clock.advance(30);
    expect(await registry.current(id('1'), stranger)).toMatchObject({ status: 'suspended' });
  });

  test('the loss and the end of it are reported once', async () => {
    const registry = kept();
    source.isReachable = false;
    expect(await registry.refresh()).toBe(false);
    expect(await registry.refresh()).toBe(false);
    expect(metrics.value('registry_lost')).toBe(1);
    source.isReachable = true;
    expect(await registry.refresh()).toBe(true);
    expect(await registry.refresh()).toBe(true);
    expect(metrics.value('registry_restored')).toBe(1);
  });

  test('records of an earlier run serve as long as they would have', async () => {
    source.isReachable = false;
    const registry = kept();
    registry.restore([
      { entry: entry('1'), seenAt: clock.now() - 500 },
      { entry: entry('2'), seenAt: clock.now() - 600 },
    ]);
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    await expect(registry.current(id('2'))).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
    clock.advance(100);
    await expect(registry.current(id('1'))).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
  });

  test('01 §12: this relay is not active', async () => {
    source.entries = [entry('1')];
    const status = registryStatusOf(kept(), id('1'));
    expect(await status.isActive()).toBe(true);
    source.isReachable = false;
    clock.advance(600);
    expect(await status.isActive()).toBe(false);
    source.isReachable = true;
    expect(await status.isActive()).toBe(true);
    clock.advance(60);
    source.entries = [entry('1', 'suspended')];
    expect(await status.isActive()).toBe(false);
    expect(await registryStatusOf(kept(), id('2')).isActive()).toBe(false);
  });
});

describe('strangers do not drive registry reads', () => {
  test('a relay that is not listed is asked for once a minute', async () => {
    const registry = kept();
    for (let round = 0; round < 5; round += 1) {
      expect(await registry.current(id('1'), stranger)).toBeUndefined();
      clock.advance(10);
    }
    expect(source.reads).toBe(1);
    clock.advance(10);
    source.entries = [entry('1')];
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
  });

  test("this relay's own questions see an entry made a moment ago", async () => {
    const registry = kept();
    expect(await registry.current(id('1'), stranger)).toBeUndefined();
    source.entries = [entry('1')];
    expect(await registry.current(id('1'))).toEqual(entry('1'));
  });

  test('relays that start at one address come in together', async () => {
    const registry = kept();
    source.entries = [...'12345'].map((digit) => entry(digit));
    for (const relay of source.entries) {
      expect(await registry.current(relay.relay_id, stranger)).toEqual(relay);
    }
    const more = registry.current(id('6'), stranger);
    await expect(more).rejects.toMatchObject({ check: 'registry_busy' });
  });

  test('one address causes one read in a second, all together ten', async () => {
    const registry = kept({ federationAddressLookupBurst: 1 });
    await registry.current(id('1'), stranger);
    await expect(registry.current(id('2'), stranger)).rejects.toMatchObject({
      check: 'registry_busy',
    });
    clock.advance(1);
    await registry.current(id('2'), stranger);
    clock.advance(1);
    for (let host = 0; host < 10; host += 1) await registry.current(id('a'), `address ${host}`);
    expect(source.reads).toBe(3);
    for (const [host, digit] of [...'bcdef345678'].entries()) {
      const asked = registry.current(id(digit), `other ${host}`);
      if (host < 9) expect(await asked).toBeUndefined();
      else await expect(asked).rejects.toMatchObject({ check: 'registry_busy' });
    }
    expect(source.reads).toBe(12);
    expect(await registry.current(id('9'))).toBeUndefined();
  });

  test('a known relay comes in while others use up the reads', async () => {
    source.entries = [entry('1')];
    const registry = kept({ federationLookupRate: 1 });
    await registry.refresh();
    clock.advance(60);
    await registry.current(id('2'), stranger);
    expect(await registry.current(id('1'), 'another')).toEqual(entry('1'));
    expect(source.reads).toBe(1);
  });
});

describe('07 §A6: if two nodes must agree, single reads do', () => {
  const confirming = () => kept({}, { isConfirming: true });
  const differ = () =>
    Promise.reject(new RegistryError('nodes_differ', 'two nodes have different records'));

  test('an active record of a list admits after a single read, once', async () => {
    source.entries = [entry('1'), entry('2', 'suspended')];
    const registry = confirming();
    await registry.refresh();
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    expect(await registry.current(id('2'), stranger)).toEqual(entry('2', 'suspended'));
    expect(source.reads).toBe(1);
    clock.advance(600);
    await registry.refresh();
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    expect(source.reads).toBe(1);
  });

  test('a changed record of a list is confirmed again', async () => {
    source.entries = [entry('1')];
    const registry = confirming();
    await registry.current(id('1'));
    clock.advance(1);
    for (const changed of [
      { ...entry('1'), updated_at: 2 },
      { ...entry('1'), endpoint: 'https://moved.example' },
    ]) {
      source.entries = [changed];
      const before = source.reads;
      await registry.refresh();
      expect(await registry.current(id('1'))).toEqual(changed);
      expect(source.reads).toBe(before + 1);
      clock.advance(1);
    }
  });

  test('nodes that differ admit no relay, not even one that was known a minute ago', async () => {
    source.entries = [entry('1')];
    const registry = confirming();
    await registry.current(id('1'));
    clock.advance(60);
    source.getRelay = differ;
    const refused = { check: 'registry_unavailable' };
    await expect(registry.current(id('1'))).rejects.toMatchObject(refused);
    await registry.refresh();
    clock.advance(60);
    await expect(registry.current(id('1'))).rejects.toMatchObject(refused);
  });

  test('nodes that differ admit no relay while reads of others fail, nor by a later list', async () => {
    source.entries = [entry('1')];
    const registry = confirming();
    await registry.refresh();
    expect(await registry.current(id('1'))).toEqual(entry('1'));
    clock.advance(60);
    source.getRelay = differ;
    const refused = { check: 'registry_unavailable' };
    await expect(registry.current(id('1'))).rejects.toMatchObject(refused);
    source.getRelay = () => Promise.reject(new RegistryError('unreachable', 'no answer'));
    await expect(registry.current(id('2'))).rejects.toMatchObject(refused);
    await expect(registry.current(id('1'))).rejects.toMatchObject(refused);
    await registry.refresh();
    await expect(registry.current(id('1'))).rejects.toMatchObject(refused);
  });

  test('while no node answers, only a confirmed record serves', async () => {
    source.entries = [entry('1'), entry('2')];
    const registry = confirming();
    await registry.current(id('1'));
    clock.advance(1);
    await registry.refresh();
    source.isReachable = false;
    clock.advance(100);
    expect(await registry.current(id('1'), stranger)).toEqual(entry('1'));
    await expect(registry.current(id('2'), stranger)).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
  });
});
