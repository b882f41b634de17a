import { describe, expect, test } from 'vitest';
import {
  checkRelayEntry,
  type RelayEntry,
  staticRegistry,
  staticRegistryInSteps,
} from '../../src/index.ts';
import { codeOf, network, otherChain, relayId, without } from './appendix.ts';

const entry: RelayEntry = {
  relay_id: relayId,
  endpoint: 'https://relay.example.com/svc/v1',
  status: 'active',
  updated_at: 1_735_689_600_000,
};
const check = (value: unknown) => codeOf(() => checkRelayEntry(value));

describe('01 §12: RelayEntry', () => {
  test('a record of each status passes', () => {
    for (const status of ['active', 'disabled', 'suspended']) {
      expect(check({ ...entry, status })).toBeUndefined();
    }
  });

  test.each(Object.keys(entry))('a record without %s is refused', (name) => {
    expect(check(without(entry, name))).toBe('bad_request');
  });

  test.each([
    ['relay_id', relayId.toUpperCase()],
    ['relay_id', `0x${relayId.slice(2).toUpperCase()}`],
    ['relay_id', relayId.slice(2)],
    ['relay_id', `${relayId}0`],
    ['relay_id', ` ${relayId}`],
    ['relay_id', `${relayId}\n`],
  ])('R1: %s %j is refused, not converted', (name, value) => {
    expect(check({ ...entry, [name]: value })).toBe('bad_request');
  });

  test.each([
    ['endpoint', 'http://relay.example.com'],
    ['endpoint', 'wss://relay.example.com'],
    ['endpoint', 'https://relay.example.com/?'],
    ['endpoint', `https://relay.example/${'a'.repeat(491)}`],
    ['status', 'Active'],
    ['status', ''],
    ['updated_at', -1],
    ['updated_at', 1.5],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(check({ ...entry, [name]: value })).toBe('bad_request');
  });
});

describe('the registry in a file', () => {
  const disabled: RelayEntry = { ...entry, relay_id: `0x${'00'.repeat(20)}`, status: 'disabled' };
  const file = { context: network.context, relays: [entry, disabled] };

  test('it finds relays by ID and lists those of every status', async () => {
    const registry = staticRegistry(network, file);
    expect(await registry.getRelay(relayId)).toEqual(entry);
    expect(await registry.getRelay(disabled.relay_id)).toEqual(disabled);
    expect(await registry.getRelay(`0x${'11'.repeat(20)}`)).toBeUndefined();
    const listed: RelayEntry[] = [];
    for await (const one of registry.listRelays()) listed.push(one);
    expect(listed).toEqual([entry, disabled]);
  });

  test('N3: a file of another network is refused', () => {
    expect(codeOf(() => staticRegistry(otherChain, file))).toBe('bad_request');
  });

  test.each<{ file: unknown; fault: string }>([
    { file: {}, fault: 'no members' },
    { file: [], fault: 'no object' },
    { file: { ...file, relays: [entry, entry] }, fault: 'a repeated relay' },
    { file: { ...file, relays: [{ ...entry, status: 'x' }] }, fault: 'a wrong status' },
    { file: { ...file, relays: [{ ...entry, endpoint: 'https://' }] }, fault: 'a wrong address' },
    { file: { relays: [entry] }, fault: 'no context' },
  ])('a file with $fault is refused', ({ file: value }) => {
    expect(codeOf(() => staticRegistry(network, value))).toBe('bad_request');
    expect(codeOf(() => [...staticRegistryInSteps(network, value)])).toBe('bad_request');
  });

  test('in steps, one record is checked in each', async () => {
    expect(codeOf(() => [...staticRegistryInSteps(otherChain, file)])).toBe('bad_request');
    const steps = staticRegistryInSteps(network, file);
    expect([steps.next().done, steps.next().done]).toEqual([false, false]);
    const { done, value: registry } = steps.next();
    expect(done).toBe(true);
    expect(await registry?.getRelay(disabled.relay_id)).toEqual(disabled);
  });

  test('the error names the record at fault', () => {
    const relays = [disabled, { ...entry, endpoint: 'ftp://x' }];
    expect(() => staticRegistry(network, { ...file, relays })).toThrow(/^relays\.1\.endpoint: /);
  });
});
