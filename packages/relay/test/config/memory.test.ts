import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/index.ts';
import { checkRelayLimits } from '../../src/limit-rules.ts';
import { defaultLimits } from '../../src/limits.ts';
import { checkMemory, fitMemory, memoryKinds, processMemory } from '../../src/memory.ts';
import { Relay } from '../../src/relay.ts';
import { temporaryFolder } from '../support/folder.ts';

/** 02 §18: the totals of all kinds of memory fit what the process may use. */

const gibibyte = 1_073_741_824;
const sum = memoryKinds(defaultLimits).reduce((all, { bytes }) => all + bytes, 0);
const nothingSet = () => false;

test('totals that fit to the byte pass, one byte more is refused in words', () => {
  expect(checkMemory({ ...defaultLimits, memory: sum }, gibibyte)).toEqual([]);
  const [problem, ...others] = checkMemory({ ...defaultLimits, memory: sum - 1 }, gibibyte);
  expect(others).toEqual([]);
  expect(problem).toContain(`${Math.ceil(sum / 1_048_576)} MiB`);
  // The largest parts, with the limits to lower.
  expect(problem).toMatch(/largest are connections \d+ MiB \(connections\), .*: lower them/);
});

test('the default is half of what the process may have', () => {
  expect(checkMemory(defaultLimits, 2 * sum)).toEqual([]);
  expect(checkMemory(defaultLimits, 2 * sum - 2)).toHaveLength(1);
  expect(processMemory()).toBeGreaterThan(0);
});

test.each([1, 2, 4, 8])(
  'with %d GiB, limits that are not set are lowered until they fit',
  (size) => {
    const available = size * gibibyte;
    const lowered = fitMemory(defaultLimits, { available, isSet: nothingSet });
    expect(checkMemory({ ...defaultLimits, ...lowered }, available)).toEqual([]);
    expect(checkRelayLimits({ ...defaultLimits, ...lowered })).toEqual([]);
    for (const [name, value] of Object.entries(lowered)) {
      expect(value).toBeLessThanOrEqual(defaultLimits[name as keyof typeof defaultLimits]);
    }
    expect(Object.keys(lowered).length === 0).toBe(size === 8);
  },
);

test('limits that must not be larger than a lowered one are lowered with it', () => {
  const limits = { ...defaultLimits, connectionsPerAddress: 20_000 };
  const options = { available: 2 * gibibyte, isSet: nothingSet };
  const { connections, connectionsPerAddress } = fitMemory(limits, options);
  expect(connections).toBeLessThan(20_000);
  expect(connectionsPerAddress).toBe(connections);
  const isSet = (name: string) => name === 'connectionsPerAddress';
  expect(fitMemory(limits, { ...options, isSet })).not.toHaveProperty('connectionsPerAddress');
});

test('what the operator has set is not lowered', () => {
  const values = { limits: { memory: 2 * gibibyte, connections: 15_000 } };
  const { config, sources } = loadConfig({ values, purpose: 'storage', memory: 64 * gibibyte });
  expect(config.limits.connections).toBe(15_000);
  expect(sources.get('limits.connections')).toBe('program');
  expect(config.limits.subscriptions).toBeLessThan(defaultLimits.subscriptions);
  expect(sources.get('limits.subscriptions')).toBe('default, lowered to fit limits.memory');
});

test('a relay whose limits do not fit does not start', async () => {
  using folder = temporaryFolder();
  const values = { dev: true, data: folder.path, listen: '127.0.0.1:0' };
  await expect(Relay.start({ ...values, limits: { memory: gibibyte / 4 } })).rejects.toThrow(
    /^limits\.memory: the limits permit \d+ MiB in all, more than 256 MiB \(set\)/,
  );
});
