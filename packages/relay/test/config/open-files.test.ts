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

test('what is set is not lowered, and the source of what is lowered says why', () => {
  const values = { limits: { connections: 5_000 } };
  const { config, sources } = loadConfig({ values, purpose: 'storage', openFiles: 1_024 });
  expect(config.limits.connections).toBe(5_000);
  expect(config.limits.strangerConnections).toBeLessThan(defaultLimits.strangerConnections);
  expect(sources.get('limits.strangerConnections')).toBe(
    'default, lowered to fit the open files of the process',
  );
  const dev = loadConfig({ values: { dev: true }, purpose: 'storage', openFiles: 1_024 });
  expect(dev.config.limits.connections).toBe(defaultLimits.connections);
});

test.runIf(process.platform === 'linux')('the system says how many files may be open', () => {
  expect(processFiles()).toBeGreaterThan(0);
});
