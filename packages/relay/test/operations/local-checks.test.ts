/** What `posthouse check` finds on this machine: each check that fails, alone. */
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig, type PartialConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import { relayMigrations } from '../../src/modules.ts';
import { spaceFinding } from '../../src/operations/checks/disk-space.ts';
import { checks } from '../../src/operations/checks/index.ts';
import { putClockMark } from '../../src/storage/clock-mark.ts';
import { openAlongside } from '../../src/storage/open.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { engine, RelayData } from '../support/engine.ts';
import { freePort } from '../support/ports.ts';
import { checksOf, withOutcome } from './checked-network.ts';

let data: RelayData;
let relay: Relay;
let settings: PartialConfig;
beforeEach(async () => {
  data = await RelayData.withSchema();
  settings = {
    ...data.config,
    ...{ dev: true, listen: `127.0.0.1:${await freePort()}` },
    federation: { listen: `127.0.0.1:${await freePort()}` },
  };
  relay = await Relay.start(settings, { log: pino({ level: 'silent' }) });
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

const local = (more: PartialConfig = {}) => checksOf({ ...settings, ...more }, 'local');

/** The findings that are neither ok nor skipped. */
const bad = (found: Awaited<ReturnType<typeof local>>) => [
  ...withOutcome(found, 'failed'),
  ...withOutcome(found, 'warning'),
];

test('a relay that runs has no failed check, and no network check is run', async () => {
  const found = await local();
  expect(bad(found)).toEqual([]);
  expect(Object.keys(found)).toEqual(
    checks.filter(({ scope }) => scope === 'local').map(({ name }) => name),
  );
  expect(found['running relay']?.seen).toContain(settings.listen);
});

test('a relay that does not run is a warning, and changes nothing else', async () => {
  await relay[Symbol.asyncDispose]();
  const found = await local();
  expect(bad(found)).toEqual(['running relay']);
  expect(found['running relay']).toMatchObject({
    seen: expect.stringContaining('does not run'),
    cure: expect.stringContaining('posthouse serve'),
  });
});

test('a running relay that does not listen for relays as configured fails', async () => {
  const found = await local({ federation: { listen: `127.0.0.1:${await freePort()}` } });
  expect(bad(found)).toEqual(['running relay']);
});

test('an invalid configuration fails, names the settings, and nothing else is checked', async () => {
  const found = await local({ public: { peer: 'relay.example' }, name: '' });
  expect(found.configuration).toMatchObject({
    outcome: 'failed',
    seen: expect.stringMatching(/public\.peer: expected.*name: /),
    cure: expect.stringContaining('posthouse config explain'),
  });
  const { length } = Object.keys(found);
  expect(withOutcome(found, 'skipped')).toHaveLength(length - 1);
});

test('keys that others can read fail; what needs them is skipped', async () => {
  const file = join(data.path, 'keys/relay.key');
  chmodSync(file, 0o644);
  const found = await local();
  expect(bad(found)).toEqual(['keys']);
  expect(found.keys?.seen).toContain('expected mode 0600, found 0644');
  expect(found.keys?.cure).toContain('chmod 600');
  expect(found.descriptor).toMatchObject({
    ...{ outcome: 'skipped', seen: 'not checked, since "keys" failed' },
  });
  rmSync(file);
  expect((await local()).keys?.cure).toContain('posthouse init');
});

test('an admin token or a policy program with which the relay would not start fails', async () => {
  const program = join(data.path, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const adminTokenFile = join(data.path, 'admin.token');
  writeFileSync(adminTokenFile, `${'a1'.repeat(32)}\n`, { mode: 0o600 });
  const set: PartialConfig = {
    operations: { listen: '127.0.0.1:0', adminTokenFile },
    policy: { command: [program] },
  };
  const [token, policy] = ['admin token', 'policy program'];
  expect(withOutcome(await local(), 'skipped')).toEqual(expect.arrayContaining([token, policy]));
  expect(withOutcome(await local(set), 'ok')).toEqual(expect.arrayContaining([token, policy]));
  chmodSync(adminTokenFile, 0o644);
  chmodSync(program, 0o644);
  const found = await local(set);
  expect(bad(found)).toEqual([token, policy]);
  expect(found[token as string]?.cure).toContain('chmod 600');
  rmSync(program);
  writeFileSync(adminTokenFile, '');
  chmodSync(adminTokenFile, 0o600);
  const missing = await local(set);
  expect(missing[token as string]?.seen).toContain('remove it, and run `posthouse init`');
  expect(missing[policy as string]?.seen).toContain('there is no such program');
});

test('a data folder that others can enter is a warning; without it the check fails', async () => {
  const mode = statSync(data.path).mode & 0o777;
  chmodSync(data.path, 0o755);
  expect((await local())['data folder']).toMatchObject({
    outcome: 'warning',
    cure: `run \`chmod 700 ${data.path}\``,
  });
  chmodSync(data.path, mode);
  const none = join(data.path, 'none');
  const found = await local({ data: none });
  expect(found['data folder']).toMatchObject({ outcome: 'failed' });
  expect(found['disk space']?.outcome).toBe('skipped');
});

test('disk space is that of what the relay writes to: on PostgreSQL not the data folder', async () => {
  const found = (await local())['disk space'];
  const onServer = 'the database is on the disk of its server: watch it there';
  if (engine === 'postgres') expect(found).toMatchObject({ outcome: 'skipped', seen: onServer });
  else expect(found?.seen).toContain(`free at ${data.path}`);
  const folder = join(data.path, 'blobs');
  // A relay that has not run yet has not made it.
  expect((await local({ blobs: { folder } }))['disk space']?.outcome).toBe('ok');
  mkdirSync(folder, { mode: 0o700 });
  const more = (await local({ blobs: { folder } }))['disk space']?.seen;
  expect(more).toContain(`free at ${folder}`);
  expect(more?.includes(onServer)).toBe(engine === 'postgres');
});

test('a database that is missing, or of another relay, fails', async () => {
  const other = join(data.path, 'other');
  mkdirSync(join(other, 'keys'), { recursive: true, mode: 0o700 });
  if (engine === 'sqlite') {
    const found = await local({ data: other });
    expect(found.database).toMatchObject({
      outcome: 'failed',
      seen: expect.stringContaining('relay.sqlite'),
    });
    expect(found.clock?.outcome).toBe('skipped');
  }
  for (const name of ['relay', 'peer']) {
    const key = `${Buffer.alloc(32, 7).toString('base64url')}\n`;
    writeFileSync(join(data.path, `keys/${name}.key`), key);
  }
  expect((await local()).database?.seen).toMatch(/of relay 0x.* keys are of relay 0x/);
});

describe('01 §11: the clock', () => {
  /** Stores the mark of a run that ended so many seconds from now. */
  async function mark(seconds: number): Promise<void> {
    await relay[Symbol.asyncDispose]();
    await using storage = await openAlongside(
      loadConfig({ values: settings }).config,
      relayMigrations,
    );
    const seenAt = Math.floor(Date.now() / 1_000) + seconds;
    await storage.write('relay', (tx) => putClockMark(tx, { seenAt }));
  }

  test('before the last run fails, in words and seconds', async () => {
    await mark(3_600);
    const found = await local();
    expect(withOutcome(found, 'failed')).toEqual(['clock']);
    expect(found.clock?.seen).toMatch(/set back by (3600|359\d) seconds/);
  });

  test('far after the last run is a warning that names the command', async () => {
    await mark(-172_800);
    const found = await local({ limits: { clockJump: 86_400 } });
    expect(found.clock).toMatchObject({
      outcome: 'warning',
      cure: expect.stringContaining('posthouse clock accept'),
    });
  });
});

test('the certificate files of another name or key fail; right ones are ok', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const made = await devCertificate(join(data.path, 'made'), ['relay.example', '127.0.0.1'], now);
  const [certificate, key] = [join(data.path, 'cert.pem'), join(data.path, 'key.pem')];
  writeFileSync(certificate, made.cert);
  writeFileSync(key, made.key, { mode: 0o600 });
  const found = async (https: string) =>
    (await local({ tls: { mode: 'files', certificate, key }, public: { https: [https] } }))[
      'certificate files'
    ];
  expect(await found('https://relay.example/svc/v1')).toMatchObject({ outcome: 'ok' });
  expect(await found('https://127.0.0.1/svc/v1')).toMatchObject({ outcome: 'ok' });
  expect(await found('https://other.example/svc/v1')).toMatchObject({
    outcome: 'failed',
    seen: expect.stringContaining('is not for other.example'),
  });
  const other = await devCertificate(join(data.path, 'second'), ['relay.example'], now);
  writeFileSync(key, other.key);
  expect((await found('https://relay.example/svc/v1'))?.seen).toContain('is not the key of');
});

test.each([
  { free: 499, diskFree: 0, total: 100_000, outcome: 'failed' },
  { free: 500, diskFree: 0, total: 100_000, outcome: 'warning' },
  { free: 999, diskFree: 0, total: 100_000, outcome: 'warning' },
  { free: 1_000, diskFree: 0, total: 100_000, outcome: 'ok' },
  // 5 % of a small disk.
  { free: 99, diskFree: 0, total: 2_000, outcome: 'failed' },
  { free: 100, diskFree: 0, total: 2_000, outcome: 'warning' },
  // What the operator sets.
  { free: 2_999, diskFree: 3_000, total: 2_000, outcome: 'failed' },
  { free: 3_000, diskFree: 3_000, total: 2_000, outcome: 'warning' },
])('$free MiB free of $total with diskFree $diskFree are $outcome', (one) => {
  const MiB = 1_048_576;
  const size = { total: one.total * MiB, free: one.free * MiB };
  expect(spaceFinding('/data', size, { diskFree: one.diskFree * MiB }).outcome).toBe(one.outcome);
});

test('each check has a name of its own, a cure, and needs only checks before it', () => {
  const before = new Set<string>();
  for (const { name, needs = [], cure } of checks) {
    expect(before.has(name)).toBe(false);
    expect(cure).not.toBe('');
    for (const one of needs) expect(before.has(one)).toBe(true);
    before.add(name);
  }
});

describe('0040: a database that was put back', () => {
  async function putBack(heldUntil: number): Promise<void> {
    const { storage, identity } = relay.context;
    await storage.write('relay', async (tx) => {
      await tx.run("INSERT INTO relay_facts VALUES ('restored_at', '1750000000')");
      await tx.run(
        `INSERT INTO groups (group_id, status, owner, name, description, member_capacity,
            invite_policy, commitment, chain_head, sequence, epoch, member_count, ban_count,
            access_ended, box_set, last_box_set, held_until, losses_end_at)
          VALUES ('g', 'active', 'o', 'n', '', 5, '', '', '', 9, 1, 2, 0, 0, 0, 0, ?, 9999999999)`,
        heldUntil,
      );
      await tx.run(
        `INSERT INTO account_routes
            (account, revision, content, relay_id, expires_at, conflict, route, held_until)
          VALUES ('a', 1, '', ?, 9999999999, 0, '{}', ?)`,
        ...[identity.relayId, heldUntil > 0 ? -1 : 0],
      );
    });
  }

  test('groups that wait for their owner and accounts that are not confirmed are a warning with its cure', async () => {
    await putBack(9_999_999_999);
    const { restored } = await local();
    expect(restored).toMatchObject({
      outcome: 'warning',
      seen: expect.stringMatching(/put back at 2025-\S+: 1 groups .* 1 of them wait .* 1 accounts/),
      cure: expect.stringContaining('courier group hand-back'),
    });
  });

  test('once nothing waits, it is no warning any more', async () => {
    await putBack(0);
    const { restored } = await local();
    expect(restored).toMatchObject({ outcome: 'ok', seen: expect.stringContaining('put back at') });
  });
});
