/** What `posthouse check` finds of the servers that a relay uses: PostgreSQL and NATS. */
import { expect, test } from 'vitest';
import { bus } from '../../src/operations/checks/bus.ts';
import type { CheckedRelay } from '../../src/operations/checks/checked-relay.ts';
import { databaseServer, serverFinding } from '../../src/operations/checks/database-server.ts';
import { engine, RelayData } from '../support/engine.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { freePort } from '../support/ports.ts';

const good = {
  ...{ version: '17.2', encoding: 'UTF8', fsync: 'on', full_page_writes: 'on' },
  ...{ free_connections: 20, idle_session_timeout: '0', transaction_timeout: null },
};
const relay = { needed: 20, isDurable: true };

test.each([
  [{}, 'ok', 'PostgreSQL 17.2, UTF8'],
  [{ fsync: 'off' }, 'failed', 'a crash of the machine can destroy the database'],
  [{ full_page_writes: 'off' }, 'failed', 'a crash of the machine can destroy the database'],
  [{ free_connections: 19 }, 'failed', 'uses up to 20'],
  [{ idle_session_timeout: '10min' }, 'warning', 'ends connections of the relay'],
  [{ transaction_timeout: '1s' }, 'warning', 'ends connections of the relay'],
])('a PostgreSQL server with %j is %s', (more, outcome, seen) => {
  const found = serverFinding({ ...good, ...more }, relay);
  expect(found).toMatchObject({ outcome, seen: expect.stringContaining(seen) });
  expect(found.cure !== undefined).toBe(outcome !== 'ok');
});

test('the settings of the server are read; SQLite has none', async () => {
  await using data = await RelayData.withSchema();
  await using opened = await data.open();
  const storage = { engine, connections: 5 };
  const checked = { config: { dev: true, storage }, storage: Promise.resolve(opened) };
  const found = await databaseServer.find(checked as unknown as CheckedRelay, AbortSignal.any([]));
  expect(found.outcome).toBe(engine === 'sqlite' ? 'skipped' : 'ok');
  if (engine === 'postgres') expect(found.seen).toMatch(/^PostgreSQL \d+.*UTF8, up to 7 of \d+/);
});

test.skipIf(withoutNats)(
  'a NATS server that answers is ok, one that does not run fails',
  async () => {
    const asked = (nats: string) =>
      bus.find({ config: { bus: { nats } } } as CheckedRelay, AbortSignal.any([]));
    await using nats = await TestNats.start();
    expect(await asked(nats.url)).toMatchObject({
      ...{
        outcome: 'ok',
        seen: expect.stringMatching(/^NATS \d.* at 127\.0\.0\.1:\d+ answers in /),
      },
    });
    await expect(asked(`nats://127.0.0.1:${await freePort()}`)).rejects.toThrow(/refused/i);
    expect((await asked('')).outcome).toBe('skipped');
  },
);
