/** The admin interface as its operator, and as others, reach it (decision 0041). */
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { accountSigner } from '@posthouse/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { findRunningRelay } from '../../src/admin/index.ts';
import { proofOf } from '../../src/admin/token.ts';
import { verbs } from '../../src/admin/verbs/index.ts';
import type { RelayConfig } from '../../src/config/index.ts';
import { nextTurn } from '../../src/event-loop.ts';
import { Relay } from '../../src/index.ts';
import { readBoundRelay } from '../../src/storage/identity.ts';
import { killAll, posthouse } from '../support/command.ts';
import { rowsOf } from '../support/engine.ts';
import { network } from '../support/modules.ts';
import { patience } from '../support/patience.ts';
import { AdminRelay, right, signRequest, token } from './admin-relay.ts';

let admin: AdminRelay;
beforeAll(async () => {
  admin = await AdminRelay.start({ limits: { registrationInvites: 12 } });
});
afterAll(async () => {
  killAll();
  await admin[Symbol.asyncDispose]();
});
beforeEach(() => {
  admin.takeLines();
});

const id = (byte: number) => accountSigner(network, new Uint8Array(32).fill(byte)).account;
const list = '/admin/v1/invite/list';

/** Holds reads of the relay, all or those of one kind, until they are released. */
function holdReads(only?: unknown) {
  const { storage } = admin.relay.context;
  const held = Promise.withResolvers<void>();
  const read = storage.read.bind(storage);
  const reads = {
    waiting: 0,
    release(error?: Error) {
      storage.read = read;
      if (error === undefined) held.resolve();
      else held.reject(error);
    },
  };
  storage.read = async (work) => {
    if (only === undefined || work === only) {
      reads.waiting += 1;
      await held.promise;
    }
    return await read(work);
  };
  return reads;
}

describe('0041: the admin interface', () => {
  test('runs a verb with its token, and logs each change once, without the code', async () => {
    const { status, value, headers } = await admin.run('invite/create', { note: 'rowing club' });
    expect(status).toBe(200);
    expect(value).toMatchObject({ uses: 1, used: 0, note: 'rowing club', registration: 'invite' });
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
    const change = { verb: 'invite create', subject: value.id, by: 'http' };
    expect(admin.takeLines()).toEqual([{ level: 40, ...change, msg: 'changed by the operator' }]);
    const listed = await admin.run('invite/list');
    expect(listed.value).toMatchObject({ items: [{ id: value.id, note: 'rowing club' }] });
    expect(listed.text).not.toContain(String(value.code));
    expect((await admin.run('invite/revoke', { id: value.id })).status).toBe(200);
    expect(admin.takeLines()).toMatchObject([{ verb: 'invite revoke', subject: value.id }]);
    const again = await admin.run('invite/revoke', { id: value.id });
    expect(again).toMatchObject({ status: 404, value: { code: 'not_found' } });
    expect(admin.takeLines()).toEqual([]);
  });

  test('without its token it answers 401 to everything but a proof, with one log line a minute', async () => {
    const wrong = [
      {},
      { authorization: 'Bearer ' },
      { authorization: token },
      { authorization: `Bearer ${token.toUpperCase()}` },
      { authorization: `Bearer ${token.slice(1)}` },
      { authorization: `Basic ${token}` },
      { authorization: `Bearer ${'b2'.repeat(32)}` },
    ];
    for (const headers of wrong) {
      for (const path of [list, '/admin/v1/no/verb', '/admin/v1/verbs']) {
        const method = path.endsWith('verbs') ? 'GET' : 'POST';
        expect(
          await admin.send(path, { method, headers: { ...without, ...headers } }),
        ).toMatchObject({ status: 401, value: { code: 'unauthorized' } });
      }
    }
    const refused = {
      level: 40,
      address: '127.0.0.1',
      msg: 'the admin interface refused a wrong token, or none',
    };
    expect(admin.takeLines()).toEqual([refused]);
    admin.clock.advance(61);
    await admin.send(list, { headers: without });
    expect(admin.takeLines()).toEqual([refused]);
  });

  test('refuses what a page of another site sends, whatever its name leads to', async () => {
    const own = new URL(admin.address).host;
    const refused: Record<string, string>[] = [
      { host: 'evil.example' },
      { host: `evil.example:${new URL(admin.address).port}` },
      { host: '127.0.0.1.evil.example' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `https://${own}` },
      { origin: 'http://127.0.0.1' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const headers of refused) {
      const answer = await admin.send(list, { headers: { ...right, ...headers } });
      expect([headers, answer.status]).toEqual([headers, 403]);
    }
    const accepted: Record<string, string>[] = [
      { host: own, origin: `http://${own}`, 'sec-fetch-site': 'same-origin' },
      { host: 'localhost:9999', origin: 'http://localhost:9999' },
      { host: '[::1]:9999' },
      { 'sec-fetch-site': 'none' },
    ];
    for (const headers of accepted) {
      const answer = await admin.send(list, { headers: { ...right, ...headers } });
      expect([headers, answer.status]).toEqual([headers, 200]);
    }
    // A type that pages may send anywhere without being asked.
    const form = await admin.send(list, {
      headers: { ...right, 'content-type': 'text/plain' },
      body: '{}',
    });
    expect(form).toMatchObject({ status: 400, value: { code: 'bad_request' } });
    expect((await admin.send(list, { method: 'OPTIONS', headers: without })).status).toBe(401);
  });

  test('refuses bodies that are no object of JSON, too large, or have wrong members', async () => {
    const bodies: [body: string, status: number, code: string][] = [
      ['[]', 400, 'bad_request'],
      ['null', 400, 'bad_request'],
      ['{', 400, 'bad_request'],
      ['{"limit":1,"limit":2}', 400, 'bad_request'],
      ['{"limit":0}', 400, 'bad_request'],
      ['{"limit":1001}', 400, 'bad_request'],
      ['{"limits":1}', 400, 'bad_request'],
      ['{"__proto__":{}}', 400, 'bad_request'],
      ['{"cursor":"x"}', 400, 'bad_request'],
      ['{"cursor":"WyJ4IiwieCJd"}', 400, 'bad_request'],
      [`{"a":"${'x'.repeat(65_528)}"}`, 400, 'bad_request'],
      [`{"a":"${'x'.repeat(65_529)}"}`, 413, 'request_too_large'],
    ];
    for (const [body, status, code] of bodies) {
      for (const chunked of [false, true]) {
        const headers = chunked ? { ...right, 'transfer-encoding': 'chunked' } : right;
        const answer = await admin.send(list, { headers, body });
        expect([body.slice(0, 40), answer.status, answer.value.code]).toEqual([
          ...[body.slice(0, 40), status, code],
        ]);
      }
    }
    expect((await admin.send(list, { headers: right })).status).toBe(200);
    for (const path of ['/admin/v1/invite/nothing', '/admin/v1/invite', '/admin/v1/']) {
      expect((await admin.send(path, { headers: right })).status).toBe(404);
    }
    expect((await admin.send(list, { method: 'GET', headers: right })).status).toBe(404);
    expect((await admin.run('account/allow', { account: 'ann' })).value).toMatchObject({
      code: 'bad_request',
      message: expect.stringMatching(/^account: /),
    });
  });

  test('refuses texts that cannot be stored, and times that are no date', async () => {
    const relay_id = `0x${'4'.repeat(40)}`;
    for (const [verb, params, name] of [
      ['invite/create', { note: 'a\0b' }, 'note'],
      ['invite/create', { note: 'a\ud800b' }, 'not valid JSON'],
      ['invite/revoke', { id: '\0' }, 'id'],
      ['block/add', { relay: relay_id, reason: 'a\0b' }, 'reason'],
      ['block/add', { relay: relay_id, until: 253_402_300_800 }, 'until'],
    ] as const) {
      const answer = await admin.run(verb, params);
      expect([verb, answer.status, answer.value.code]).toEqual([verb, 400, 'bad_request']);
      expect(answer.value.message).toContain(name);
    }
    const last = { relay: relay_id, until: 253_402_300_799 };
    expect((await admin.run('block/add', last)).status).toBe(200);
    expect((await admin.run('block/remove', { relay: relay_id })).status).toBe(200);
    expect(admin.takeLines().map(({ level }) => level)).toEqual([40, 40]);
  });

  test('lists in pages, each after the one before, whatever is added meanwhile', async () => {
    const made: unknown[] = [];
    for (let count = 0; count < 5; count += 1) {
      made.push((await admin.run('invite/create')).value.id);
      admin.clock.advance(1);
    }
    const seen: unknown[] = [];
    let cursor: unknown;
    for (let pages = 1; ; pages += 1) {
      const { value } = await admin.run('invite/list', { limit: 2, ...(cursor ? { cursor } : {}) });
      seen.push(...(value.items as { id: string }[]).map((item) => item.id));
      cursor = value.next;
      if (cursor === undefined) {
        expect(pages).toBe(3);
        break;
      }
    }
    expect(seen).toEqual(made);
    for (const invite of made) await admin.run('invite/revoke', { id: invite });
  });

  test('has at most 8 verbs under way, and answers each when it is done, however long it takes', async () => {
    const reads = holdReads();
    const asked = Array.from({ length: 8 }, () => admin.run('invite/list'));
    await vi.waitFor(() => expect(reads.waiting).toBeGreaterThanOrEqual(8), patience);
    const full = { status: 503, value: { code: 'temporarily_unavailable' } };
    expect(await admin.run('invite/list')).toMatchObject(full);
    admin.clock.advance(600);
    expect(await admin.run('invite/list')).toMatchObject(full);
    reads.release();
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(200);
    expect((await admin.run('invite/list')).status).toBe(200);
  });

  test('a caller that accepts lines gets one a second, then the status and the answer', async () => {
    const headers = { ...right, accept: 'application/x-ndjson' };
    const lines = async (error?: Error) => {
      admin.clock.advance(10);
      // The first step of the totals.
      const reads = holdReads(readBoundRelay);
      const asked = admin.send('/admin/v1/relay/stats', { headers });
      await vi.waitFor(() => expect(reads.waiting).toBeGreaterThan(0), patience);
      admin.clock.advance(1);
      admin.clock.advance(1);
      reads.release(error);
      const { status, text, headers: answered } = await asked;
      expect([status, answered['content-type']]).toEqual([200, 'application/x-ndjson']);
      const [first, second, last, ...others] = text.trim().split('\n');
      expect([first, second, others]).toEqual([
        ...['{"progress":{"step":"reading rows","done":500}}', '{}', []],
      ]);
      return JSON.parse(last ?? '') as unknown;
    };
    expect(await lines()).toEqual({
      ...{ status: 200, value: expect.objectContaining({ accounts: 0 }) },
    });
    expect(await lines(new Error('of the test'))).toEqual({
      ...{ status: 503, value: { code: 'internal_error', message: 'see the log' } },
    });
    // A quick answer is as for others.
    const quick = await admin.send('/admin/v1/invite/list', { headers });
    expect([quick.status, quick.headers['content-type']]).toEqual([200, 'application/json']);
  });

  test('an error that is no answer to operators is in the log alone', async () => {
    const { storage } = admin.relay.context;
    const read = storage.read.bind(storage);
    storage.read = () => Promise.reject(new Error('secret of the test'));
    const answer = await admin.run('invite/list');
    storage.read = read;
    expect(answer).toMatchObject({ status: 503, value: { code: 'internal_error' } });
    expect(answer.text).not.toContain('secret');
    // A job may have read too.
    const own = admin.takeLines().filter(({ verb }) => verb !== undefined);
    expect(own).toMatchObject([{ level: 50, verb: 'invite list' }]);
  });

  test('logs a retry that ended a pause, once, and none without effect', async () => {
    const relay_id = `0x${'7'.repeat(40)}`;
    const well = `0x${'6'.repeat(40)}`;
    const { storage } = admin.relay.context;
    for (const [id, since] of [
      [relay_id, 5],
      [well, null],
    ] as const) {
      await storage.write('relays', (tx) =>
        tx.run(
          `INSERT INTO relays (relay_id, endpoint, status, updated_at, seen_at, failures,
              failing_since, retry_at)
            VALUES (?, 'https://b.example/svc/v1', 'active', 1, 1, 0, ?, NULL)`,
          ...[id, since],
        ),
      );
    }
    expect((await admin.run('peer/retry', { relay_id })).value).toMatchObject({ is_retried: true });
    const change = { verb: 'peer retry', subject: relay_id, by: 'http' };
    expect(admin.takeLines()).toEqual([{ level: 40, ...change, msg: 'changed by the operator' }]);
    expect((await admin.run('peer/retry', { relay_id: well })).value).toMatchObject({
      is_retried: false,
    });
    expect((await admin.run('peer/retry', { relay_id: `0x${'8'.repeat(40)}` })).status).toBe(404);
    expect(admin.takeLines()).toEqual([]);
  });

  test('logs a blocked address as an address, which logAddresses hides; other blocks by ID', async () => {
    const address = '198.51.100.0/24';
    const relay = `0x${'9'.repeat(40)}`;
    await admin.run('block/add', { address });
    await admin.run('block/add', { relay });
    await admin.run('block/remove', { address });
    const msg = 'changed by the operator';
    expect(admin.takeLines()).toEqual([
      { level: 40, verb: 'block add', address, by: 'http', msg },
      { level: 40, verb: 'block add', subject: `relay ${relay}`, by: 'http', msg },
      { level: 40, verb: 'block remove', address, by: 'http', msg },
    ]);
  });

  test('refuses to block what is a trusted proxy now, not what was one at the start', async () => {
    const { values, relay } = admin;
    const refused = { status: 400, value: { code: 'bad_request' } };
    expect((await admin.run('block/add', { address: '198.51.100.0/24' })).status).toBe(200);
    await relay.reload({ ...values, trustedProxies: ['198.51.101.7'] });
    expect(await admin.run('block/add', { address: '198.51.101.0/24' })).toMatchObject(refused);
    await relay.reload(values);
    expect((await admin.run('block/add', { address: '198.51.101.0/24' })).status).toBe(200);
  });

  test('a signed request counts once, for a minute, with its path and body; it has no token', async () => {
    const challenge = 'c3'.repeat(32);
    const nonceOf = async () => {
      const path = `/admin/v1/proof?challenge=${challenge}`;
      return String((await admin.send(path, { method: 'GET' })).value.nonce);
    };
    const body = '{"limit":1}';
    const headersFor = (nonce: string, signed: object = {}, key = token) => ({
      ...without,
      authorization: signRequest(key, { nonce, path: list, body, ...signed }),
    });
    const codeWith = async (headers: Record<string, string>, sent = body) =>
      (await admin.send(list, { headers, body: sent })).status;
    const right = headersFor(await nonceOf());
    expect(right.authorization).not.toContain(token);
    expect([await codeWith(right), await codeWith(right)]).toEqual([200, 401]);
    expect(await codeWith(headersFor(await nonceOf()), '{"limit":2}')).toBe(401);
    expect(await codeWith(headersFor(await nonceOf(), { path: '/admin/v1/x/y' }))).toBe(401);
    expect(await codeWith(headersFor(await nonceOf(), {}, 'b2'.repeat(32)))).toBe(401);
    const nonce = await nonceOf();
    expect(await codeWith(headersFor(nonce.replace(/^[0-9a-f]+/, 'fffffffff')))).toBe(401);
    admin.clock.advance(60);
    expect(await codeWith(headersFor(nonce))).toBe(200);
    const late = await nonceOf();
    admin.clock.advance(61);
    expect(await codeWith(headersFor(late))).toBe(401);
  });

  test('describes its verbs, each once', async () => {
    const { value } = await admin.send('/admin/v1/verbs', { method: 'GET', headers: right });
    const items = value.items as { noun: string; verb: string; params: object }[];
    expect(items.map(({ noun, verb }) => `${noun} ${verb}`)).toEqual(
      verbs.map(({ noun, name }) => `${noun} ${name}`),
    );
    expect(new Set(items.map(({ noun, verb }) => `${noun} ${verb}`)).size).toBe(verbs.length);
    expect(items[0]?.params).toMatchObject({ type: 'object' });
    for (const { changes, subject } of verbs) expect(changes).toBe(subject !== undefined);
  });
});

describe('0041: a command', () => {
  test('uses the running relay, which logs the change, and else the database, with the same output', async () => {
    const { data } = admin;
    const alone = async (...args: string[]) => {
      const { ended, output } = posthouse([...args, '--data', data.path], data.environment);
      return { code: await ended, output: output.text, errors: output.errors };
    };
    const allowed = await admin.command('account', 'allow', id(1));
    expect(allowed).toEqual({ code: 0, output: `${id(1)} is let in\n`, errors: '' });
    const change = { verb: 'account allow', subject: id(1), msg: 'changed by the operator' };
    const changes = () => admin.takeLines().filter(({ msg }) => msg === change.msg);
    expect(changes()).toEqual([{ level: 40, ...change, by: 'http' }]);
    expect(await alone('account', 'allow', id(1))).toEqual(allowed);
    const again = await alone('account', 'allow', id(1), '--log', 'warn');
    expect(again).toMatchObject({ code: 0, output: allowed.output });
    expect(JSON.parse(again.errors)).toMatchObject({ level: 40, ...change, by: 'command' });
    expect(changes()).toEqual([]);
    expect(await admin.command('account', 'allowed', '--json')).toEqual(
      await alone('account', 'allowed', '--json'),
    );
    const wrong = ['invite', 'create', '--note', 'ä'.repeat(129)];
    const refused = await admin.command(...wrong);
    expect(refused).toEqual({
      ...{ code: 1, output: '' },
      errors: '--note: over 256 bytes: give a shorter one\n',
    });
    expect(await alone(...wrong)).toEqual(refused);
    await admin.command('account', 'disallow', id(1));
    expect(await rowsOf(admin.relay.context.storage, 'registration_allowed')).toEqual([]);
  });

  test('waits for a verb of the running relay that takes minutes, and shows how far it is', async () => {
    admin.clock.advance(10);
    const reads = holdReads(readBoundRelay);
    const asked = admin.command('stats');
    await vi.waitFor(() => expect(reads.waiting).toBeGreaterThan(0), patience);
    for (let second = 0; second < 120; second += 1) {
      admin.clock.advance(1);
      await nextTurn();
    }
    reads.release();
    const { code, output, errors } = await asked;
    expect(code).toBe(0);
    expect(output).toMatch(/^accounts +0$/m);
    expect(errors).toMatch(/^reading rows 500/);
  });

  test('sends no token to another program that listens in place of the relay', async () => {
    const heard: string[] = [];
    await using impostor = createServer((request, response) => {
      heard.push(`${request.url} ${request.headers.authorization ?? ''}`);
      response.end(JSON.stringify({ proof: 'a'.repeat(64), items: [] }));
    });
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    const { port } = impostor.address() as AddressInfo;
    const { data } = admin;
    const { ended, output } = posthouse(['account', 'allow', id(2), '--data', data.path], {
      ...data.environment,
      POSTHOUSE_OPERATIONS_LISTEN: `127.0.0.1:${port}`,
      POSTHOUSE_OPERATIONS_ADMIN_TOKEN_FILE: join(data.path, 'admin.token'),
    });
    expect(await ended).toBe(0);
    expect(output.text).toBe(`${id(2)} is let in\n`);
    expect(heard).toEqual([expect.stringMatching(/^\/admin\/v1\/proof\?challenge=[0-9a-f]{64} $/)]);
    const stored = await rowsOf(admin.relay.context.storage, 'registration_allowed');
    expect(stored).toMatchObject([{ account: id(2) }]);
  });
});

describe('0041: a command sends the token over the connection that was proved, and over no other', () => {
  test('a program that forwards to another process of the relay gets no token', async () => {
    const tokens: unknown[] = [];
    await using impostor = createServer((incoming, response) => {
      const { method, url, headers } = incoming;
      tokens.push(headers.authorization);
      const onward = request(`${admin.address}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    const { port } = impostor.address() as AddressInfo;
    const { data } = admin;
    const { ended, output } = posthouse(['account', 'allow', id(4), '--data', data.path], {
      ...data.environment,
      POSTHOUSE_OPERATIONS_LISTEN: `127.0.0.1:${port}`,
      POSTHOUSE_OPERATIONS_ADMIN_TOKEN_FILE: join(data.path, 'admin.token'),
    });
    expect(await ended).toBe(0);
    expect(output.text).toBe(`${id(4)} is let in\n`);
    expect(tokens).toEqual([undefined]);
  });

  test('if the connection ends after the proof, no other one gets the token', async () => {
    const tokens: unknown[] = [];
    await using relay = createServer((incoming, response) => {
      tokens.push(incoming.headers.authorization);
      const { localAddress: address, localPort: port } = incoming.socket;
      const challenge = incoming.url?.split('=')[1] ?? '';
      const proof = proofOf(challenge, token, { address, port, certificate: undefined });
      response.setHeader('connection', 'close').end(JSON.stringify({ proof }));
    });
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    const { port } = relay.address() as AddressInfo;
    const adminTokenFile = join(admin.data.path, 'admin.token');
    const operations = { listen: `127.0.0.1:${port}`, adminTokenFile, tls: false };
    const running = await findRunningRelay({ operations } as RelayConfig);
    await expect(running?.call('invite', 'list', {})).rejects.toThrow();
    expect(tokens).toEqual([undefined, undefined]);
  });
});

describe('0041: the start', () => {
  test('with TLS the interface has the certificate of the relay, and the command trusts only that', async () => {
    await using secure = await AdminRelay.start({
      operations: {
        listen: '127.0.0.1:0',
        tls: true,
        adminTokenFile: join(admin.data.path, 'admin.token'),
      },
    });
    expect(secure.address).toMatch(/^https:/);
    const environment = {
      ...secure.data.environment,
      POSTHOUSE_OPERATIONS_LISTEN: new URL(secure.address).host,
      POSTHOUSE_OPERATIONS_TLS: 'true',
      POSTHOUSE_OPERATIONS_ADMIN_TOKEN_FILE: join(admin.data.path, 'admin.token'),
      POSTHOUSE_TLS_MODE: 'files',
      POSTHOUSE_TLS_CERTIFICATE: join(secure.data.path, 'tls/server.pem'),
      POSTHOUSE_TLS_KEY: join(secure.data.path, 'tls/server.key'),
    };
    const args = ['account', 'allow', id(3), '--data', secure.data.path];
    const { ended, output } = posthouse(args, environment);
    expect(await ended).toBe(0);
    expect(output).toMatchObject({ text: `${id(3)} is let in\n`, errors: '' });
    expect(secure.takeLines()).toMatchObject([{ verb: 'account allow', by: 'http' }]);
    // Another relay's certificate: the command does not ask it.
    const other = posthouse([...args, '--log', 'warn'], {
      ...environment,
      POSTHOUSE_TLS_CERTIFICATE: join(admin.data.path, 'tls/server.pem'),
      POSTHOUSE_TLS_KEY: join(admin.data.path, 'tls/server.key'),
    });
    expect(await other.ended).toBe(0);
    expect(JSON.parse(other.output.errors)).toMatchObject({ by: 'command' });
    expect(secure.takeLines()).toEqual([]);
  });

  test('a token that others can read, or that is none, is an error in words', async () => {
    const { data } = admin;
    const start = (adminTokenFile: string) =>
      Relay.start({
        ...{ data: join(data.path, 'other'), dev: true, listen: '127.0.0.1:0', log: 'silent' },
        operations: { listen: '127.0.0.1:0', adminTokenFile },
      });
    await expect(start(join(data.path, 'tls/server.pem'))).rejects.toThrow(
      /^operations\.adminTokenFile: .* expected (?:mode 0600|32 bytes)/,
    );
    await expect(start(join(data.path, 'absent'))).rejects.toThrow(
      /^operations\.adminTokenFile: .*absent: cannot be read, make it with `posthouse init`$/,
    );
    expect(readFileSync(join(data.path, 'admin.token'), 'utf8')).toBe(`${token}\n`);
  });
});

/** Right headers without the token. */
const without = { 'content-type': 'application/json' };
