import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/index.ts';
import { checkRelayLimits } from '../../src/limit-rules.ts';
import { defaultLimits } from '../../src/limits.ts';
import { fitOpenFiles, processFiles } from '../../src/open-files.ts';

/** 02 §18: connections never take the last descriptor of the process. */

const nothingSet = () => false;

test.each([300, 1_024, 4_096, 20_000])(
  'with %d open files, limits of connections that are not set are lowered until they fit',
  (available) => {
    const all = {
      ...defaultLimits,
      ...fitOpenFiles(defaultLimits, { available, isSet: nothingSet }),
    };
    expect(checkRelayLimits(all)).toEqual([]);
    const most = all.connections + all.handshakesUnfinished + all.peerConnections;
    expect(most).toBeLessThan(Math.max(available - 200, 145));
    // The reserve for those with a session stays.
    expect(all.strangerConnections).toBeLessThan(0.81 * all.connections);
  },
);

test('the defaults fit 23,000 open files', () => {
  expect(fitOpenFiles(defaultLimits, { available: 23_000, isSet: nothingSet })).toEqual({});
});

test('what is set is not lowered, the rest fits next to it, and the source says why', () => {
  const values = {
    limits: { connections: 400, strangerConnections: 300, connectionsPerAddress: 9 },
  };
  const { config, sources } = loadConfig({ values, purpose: 'storage', openFiles: 1_024 });
  const { limits } = config;
  expect(limits).toMatchObject(values.limits);
  const most = limits.connections + limits.handshakesUnfinished + limits.peerConnections;
  expect(most).toBeLessThanOrEqual(1_024 - 256);
  const why = 'default, lowered to fit the open files of the process';
  expect(sources.get('limits.peerConnections')).toBe(why);
  expect(sources.get('limits.addressHandshakesUnfinished')).toBe(why);
  const dev = loadConfig({ values: { dev: true }, purpose: 'storage', openFiles: 1_024 });
  expect(dev.config.limits.connections).toBe(defaultLimits.connections);
});

test('next to connections that are set, those with a session keep their share', () => {
  const values = { limits: { connections: 500 } };
  const { config } = loadConfig({ values, purpose: 'storage', openFiles: 1_024 });
  expect(config.limits).toMatchObject({ connections: 500, strangerConnections: 400 });
});

test('with all of them set nothing is lowered', () => {
  const set = { connections: 1_000, handshakesUnfinished: 300, peerConnections: 300 };
  const isSet = (name: string) => name in set;
  const limits = { ...defaultLimits, ...set, strangerConnections: 800 };
  expect(fitOpenFiles(limits, { available: 1_024, isSet })).toEqual({});
});

test('a limit is not lowered below what is set of those that it bounds', () => {
  const values = {
    limits: { connectionsPerAddress: 1_500, peersConnected: 100, strangerConnections: 1_600 },
  };
  const { config } = loadConfig({ values, purpose: 'storage', openFiles: 1_024 });
  expect(config.limits).toMatchObject({
    ...values.limits,
    ...{ connections: 1_600, peerConnections: 100 },
  });
});

test.runIf(process.platform === 'linux')('the system says how many files may be open', () => {
  expect(processFiles()).toBeGreaterThan(0);
});
