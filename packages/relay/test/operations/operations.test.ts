import { request } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';

const listening = { operations: { listen: '127.0.0.1:0' } };

async function ask(url: string, method = 'GET') {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const outgoing = request(url, { method }, async (incoming) => {
    let text = '';
    for await (const chunk of incoming) text += chunk;
    resolve({ status: incoming.statusCode ?? 0, text });
  });
  outgoing.on('error', reject);
  outgoing.end();
  return await promise;
}

test('without an address nothing listens for operators', async () => {
  await using relay = await ServedRelay.start();
  expect(relay.server.operations).toBeUndefined();
});

describe('/health', () => {
  test('a relay that answers calls is ok', async () => {
    await using relay = await ServedRelay.start(listening);
    const { status, text } = await ask(`${relay.server.operations}/health`);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({
      ...{ status: 'ok', storage: 'ok', disk: 'ok', bus: 'ok', clock: 'ok', registry: 'ok' },
      ...{
        certificate: 'ok',
        policy: 'none',
        version: manifest.version,
        schema: expect.any(Number),
      },
      losses: { groups: 0, channels: 0 },
      peers: { connected: 0, failing: 0 },
    });
  });

  test('0044, 0046: it counts groups and channels of which clients say that a restore lost something', async () => {
    await using relay = await ServedRelay.start(listening);
    const { restoreLosses } = relay.server.context;
    for (const id of ['one', 'two', 'one']) restoreLosses.note('group', id);
    restoreLosses.note('channel', 'three');
    const health = async () =>
      JSON.parse((await ask(`${relay.server.operations}/health`)).text) as object;
    expect(await health()).toMatchObject({ status: 'ok', losses: { groups: 2, channels: 1 } });
    relay.clock.advance(86_400);
    expect(await health()).toMatchObject({ losses: { groups: 0, channels: 0 } });
  });

  test('a relay whose storage fails is unavailable, and well again when it does not', async () => {
    await using relay = await ServedRelay.start(listening);
    relay.faults.beforeStatement = () => {
      throw new Error('fault of the test');
    };
    const failing = await ask(`${relay.server.operations}/health`);
    expect(failing.status).toBe(503);
    expect(JSON.parse(failing.text)).toMatchObject({ status: 'unavailable', storage: 'lost' });
    delete relay.faults.beforeStatement;
    expect((await ask(`${relay.server.operations}/health`)).status).toBe(200);
  });

  test('concurrent health requests share one query', async () => {
    await using relay = await ServedRelay.start(listening);
    let queries = 0;
    relay.faults.beforeStatement = (sql) => {
      if (sql.startsWith('SELECT 1')) queries += 1;
    };
    const { storage } = relay.server.context;
    const held = Promise.withResolvers<void>();
    const read = storage.read.bind(storage);
    storage.read = async (work) => {
      await held.promise;
      return await read(work);
    };
    const asked = Array.from({ length: 20 }, () => ask(`${relay.server.operations}/health`));
    // A last one on its own path has been answered when all of them have arrived.
    await ask(`${relay.server.operations}/metrics`);
    held.resolve();
    const answers = await Promise.all(asked);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(queries).toBeLessThanOrEqual(2);
  });
});

describe('/metrics', () => {
  test('counts calls by method, transport and code, with the time they took', async () => {
    await using relay = await ServedRelay.start(listening);
    await relay.http().call('relay.info', {});
    const { status, text } = await ask(`${relay.server.operations}/metrics`);
    expect(status).toBe(200);
    const labels = 'method="relay.info",transport="http"';
    expect(text).toContain(`posthouse_calls_total{code="ok",${labels}} 1`);
    expect(text).toContain(`posthouse_call_seconds_bucket{${labels},le="+Inf"} 1`);
    expect(text).toContain(`posthouse_call_seconds_count{${labels}} 1`);
    expect(text).toContain('# TYPE posthouse_call_seconds histogram');
    expect(text).toContain('# TYPE posthouse_connections gauge');
  });

  test('says what the process uses, what there is, and how the jobs do', async () => {
    await using relay = await ServedRelay.start(listening);
    await relay.register('ann');
    await relay.register('ben');
    const { account } = await relay.register('gone');
    // As after `posthouse account delete`.
    await relay.server.context.storage.write('relay', (tx) =>
      tx.run("UPDATE account_routes SET route = '' WHERE account = ?", account),
    );
    await vi.waitFor(async () => {
      relay.clock.advance(600);
      const { text } = await ask(`${relay.server.operations}/metrics`);
      const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
      expect(text).toMatch(
        /^posthouse_build_info\{node="[0-9.]+",schema="\d+",version="[^"]+"\} 1$/m,
      );
      expect(value('posthouse_accounts')).toBe(2);
      expect(value('posthouse_groups')).toBe(0);
      expect(value('posthouse_process_resident_memory_bytes')).toBeGreaterThan(1e7);
      expect(value('posthouse_database_bytes')).toBeGreaterThan(100_000);
      expect(value('posthouse_event_loop_delay_seconds\\{percentile="99"\\}')).toBeGreaterThan(0);
      expect(value('posthouse_ready')).toBe(1);
      expect(value('posthouse_certificate_left_seconds')).toBeGreaterThan(86_400);
      const job = '\\{job="messages.retention"\\}';
      const { clock } = relay;
      expect(value(`posthouse_job_last_success_seconds${job}`)).toBeGreaterThan(clock.now() - 601);
      expect(value(`posthouse_job_overdue_seconds${job}`)).toBe(0);
    }, patience);
  });

  test('every line is one of the format', async () => {
    await using relay = await ServedRelay.start(listening);
    await relay.http().call('relay.info', {});
    await relay.http().call('auth.challenge', { account: 'unknown' });
    const { text } = await ask(`${relay.server.operations}/metrics`);
    const line =
      /^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{[a-z]+="[^"\\]*"(?:,[a-z]+="[^"\\]*")*\})? [0-9.e+-]+)$/;
    const odd = text
      .trimEnd()
      .split('\n')
      .filter((one) => !line.test(one));
    expect(odd).toEqual([]);
  });

  test('names a client makes up become no label', async () => {
    await using relay = await ServedRelay.start();
    const socket = await relay.socket();
    for (let count = 0; count < 20; count += 1) await socket.call(`made.up.${count}`);
    const text = relay.server.context.metrics.exposition();
    expect(text).not.toContain('made.up');
    expect(text).toContain('posthouse_calls_total{code="method_not_found",method="unknown"');
  });

  test('no count outlives the account that made it: labels are of closed sets', async () => {
    await using relay = await ServedRelay.start(listening);
    const person = await relay.register('ann');
    const { text } = await ask(`${relay.server.operations}/metrics`);
    expect(text).not.toContain(person.account);
  });
});

test('other paths and verbs are refused', async () => {
  await using relay = await ServedRelay.start(listening);
  expect((await ask(`${relay.server.operations}/`)).status).toBe(404);
  expect((await ask(`${relay.server.operations}/svc/v1/relay/info`)).status).toBe(404);
  expect((await ask(`${relay.server.operations}/health`, 'POST')).status).toBe(405);
});

test('an address in use stops the start', async () => {
  await using relay = await ServedRelay.start(listening);
  const taken = new URL(relay.server.operations as string).host;
  await expect(ServedRelay.start({ operations: { listen: taken } })).rejects.toThrow(
    'another process listens there',
  );
});

test('a configuration with a port over 65535 is refused', async () => {
  const start = ServedRelay.start({ operations: { listen: '127.0.0.1:70000' } });
  await expect(start).rejects.toThrow('operations.listen: expected a port up to 65535');
});
