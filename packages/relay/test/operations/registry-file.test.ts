import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { Relay } from '../../src/index.ts';
import { createLog } from '../../src/observability/log.ts';
import { RelayData } from '../support/engine.ts';
import { patience } from '../support/patience.ts';

test('a registry file that breaks is in health and log, also of a relay without other relays', async () => {
  await using data = await RelayData.withSchema();
  const lines: string[] = [];
  const log = createLog('error', { write: (line) => void lines.push(line) });
  await using relay = await Relay.start(
    {
      ...data.config,
      ...{ dev: true, listen: '127.0.0.1:0', operations: { listen: '127.0.0.1:0' } },
      ...{ federation: { listen: '' }, public: { peer: '/ip4/127.0.0.1/tcp/4201' } },
    },
    { log },
  );
  const health = async () => {
    relay.wakeJobs();
    const response = await fetch(`${relay.operations}/health`);
    return ((await response.json()) as { registry: string; status: string }).registry;
  };
  const path = join(data.path, 'registry.json');
  const text = readFileSync(path, 'utf8');
  expect(await health()).toBe('ok');
  writeFileSync(path, 'nothing of a registry');
  await vi.waitFor(async () => expect(await health()).toBe('lost'), patience);
  expect(lines.filter((line) => line.includes('registry cannot be read'))).toHaveLength(1);
  writeFileSync(path, text);
  await vi.waitFor(async () => expect(await health()).toBe('ok'), patience);
});
