import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { beforeEach, describe, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { dump } from '../support/engine.ts';
import { codeOf, type HttpClient, type HttpMessage } from '../support/http.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({ host: { channels: false } });
let http: HttpClient;

beforeEach(async () => {
  http = relay.http();
});

const account = 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';
const json = { 'content-type': 'application/json' };
const post = (body: string | Uint8Array, headers: HttpMessage['headers'] = json) =>
  http.send({ verb: 'POST', path: '/auth/challenge', headers, body });
const good = JSON.stringify({ account });
const get = (path: string, headers = {}) => http.send({ verb: 'GET', path, headers });

describe('02 §3.1: success', () => {
  test('a response object is the body, with 200', async () => {
    const answer = await post(good);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(JSON.parse(answer.text)).toHaveProperty('nonce');
  });

  test('a method without one answers 204 and nothing', async () => {
    const ann = await relay.register('ann');
    const { token } = await relay.logInDevice(ann);
    const answer = await http.call('profile.publish', ann.profile(), { token });
    expect(answer.status).toBe(204);
    expect(answer.text).toBe('');
    expect(answer.headers).not.toHaveProperty('content-type');
  });
});

describe('02 §2.3: content types', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON;CHARSET=UTF-8',
    'application/json ; charset="utf-8"',
    'application/json; version=1',
  ])('%s is accepted', async (type) => {
    expect((await post(good, { 'content-type': type })).status).toBe(200);
  });

  test.each([
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application/json; charset=""',
    'application/json; charset=utf-8; charset=utf-16',
    'application/jsonp',
    'application/vnd.api+json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'nonsense',
    '*/*',
  ])('%s is bad_request', async (type) => {
    const answer = await post(good, { 'content-type': type });
    expect(answer.status).toBe(400);
    expect(codeOf(answer)).toBe('bad_request');
  });

  test('none at all is bad_request', async () => {
    expect(codeOf(await post(good, {}))).toBe('bad_request');
  });

  test('a compressed body is bad_request', async () => {
    expect(codeOf(await post(good, { ...json, 'content-encoding': 'gzip' }))).toBe('bad_request');
  });
});

describe('01 §2.1, 02 §2.3: bodies', () => {
  test.each<[string, string | Uint8Array]>([
    ['cut off', '{"account":'],
    ['with trailing characters', `${good} x`],
    ['with a byte order mark', `\ufeff${good}`],
    ['that repeats a member', `{"account":"${account}","account":"${account}"}`],
    ['with a fraction', `{"account":"${account}","x":1.5}`],
    ['with a lone surrogate', `{"account":"${account}","x":"\\ud800"}`],
    ['too deep', `{"account":"${account}","x":${'['.repeat(17)}${']'.repeat(17)}}`],
    ['that is no UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['that is an array', '[]'],
    ['that is null', 'null'],
    ['with a null member', `{"account":"${account}","x":null}`],
    ['that is empty where a member is required', ''],
  ])('a body %s is bad_request', async (_, body) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect(codeOf(answer)).toBe('bad_request');
  });

  test('§2.5: unknown members are tolerated', async () => {
    expect((await post(`{"account":"${account}","x":{"__proto__":[1]}}`)).status).toBe(200);
  });

  test('the query of a POST is ignored', async () => {
    const message = { verb: 'POST', headers: json, body: good };
    const answer = await http.send({ ...message, path: '/auth/challenge?account=x&account=%zz' });
    expect(answer.status).toBe(200);
  });

  test('§18: the largest body passes, one byte more is request_too_large', async () => {
    const padded = (bytes: number) => good.padEnd(bytes, ' ');
    expect((await post(padded(2_097_152))).status).toBe(200);
    const answer = await post(padded(2_097_153));
    expect(answer.status).toBe(413);
    expect(codeOf(answer)).toBe('request_too_large');
    expect((await post(good)).status).toBe(200);
  });

  test('a body that declares no length is counted as it comes', async () => {
    const headers = { ...json, 'transfer-encoding': 'chunked' };
    expect((await post(good, headers)).status).toBe(200);
    const answer = await post(good.padEnd(2_097_153, ' '), headers);
    expect(codeOf(answer)).toBe('request_too_large');
  });
});

describe('02 §2.4: queries', () => {
  const route = (query: string) => get(`/account/route/resolve?${query}`);

  test('every percent-encoding of a value is the value, decoded once', async () => {
    const encoded = [...account].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
    expect(codeOf(await route(`account=${encoded}`))).not.toBe('bad_request');
    expect(codeOf(await route(`%61ccount=${account}`))).not.toBe('bad_request');
    const twice = encodeURIComponent(encodeURIComponent(account));
    expect(codeOf(await route(`account=${twice}`))).toBe('bad_request');
  });

  test.each([
    ['repeated', `account=${account}&account=${account}`],
    ['repeated under another spelling', `account=${account}&%61ccount=${account}`],
    ['malformed', `account=${account}%z`],
    ['missing', ''],
    ['empty', 'account='],
    ['in another case', `Account=${account}`],
  ])('a parameter that is %s is bad_request', async (_, query) => {
    expect(codeOf(await route(query))).toBe('bad_request');
  });

  test('unknown names are ignored', async () => {
    expect(codeOf(await route(`account=${account}&x=1&x=2`))).not.toBe('bad_request');
  });

  test.each(['01', '+1', '1.0', '-0', '1e2', 'x', '', '0', '9007199254740992'])(
    'limit=%s is bad_request',
    async (limit) => {
      const ann = await relay.register('ann');
      const { token } = await relay.logInDevice(ann);
      const session = { 'x-svc-session': token };
      const query = `limit=${encodeURIComponent(limit)}`;
      expect(codeOf(await get(`/message/timeline/sync?${query}`, session))).toBe('bad_request');
      expect(codeOf(await get('/message/timeline/sync?limit=1', session))).toBe('ok');
    },
  );
});

describe('02 §18: what does not exist, here or at all', () => {
  test.each([
    ['GET', '/nonsense'],
    ['GET', '/relay/Info'],
    ['GET', '/relay/info/'],
    ['GET', '/relay.info'],
    ['GET', '/'],
    ['GET', ''],
    ['GET', '//svc/v2/relay/info'],
    ['GET', '//'],
    ['GET', '//svc/v1/../../etc/passwd'],
    ['GET', '/relay/%zz'],
    ['POST', '/relay/info'],
    ['GET', '/auth/challenge'],
    ['PUT', '/auth/challenge'],
    ['DELETE', '/profile/publish'],
    ['HEAD', '/relay/info'],
    ['OPTIONS', '/relay/info'],
    ['TRACE', '/relay/info'],
    ['POST', '/group/subscribe'],
    ['GET', '/channel/read'],
    ['POST', '/device/status'],
  ])('%s %s is method_not_found with 400', async (verb, path) => {
    const answer = await http.send({ verb, path });
    expect(answer.status).toBe(400);
    if (verb !== 'HEAD') expect(codeOf(answer)).toBe('method_not_found');
  });

  test('the body of an unknown path is not looked at', async () => {
    const answer = await http.send({
      verb: 'POST',
      path: '/nonsense',
      body: '{"x":',
      headers: json,
    });
    expect(codeOf(answer)).toBe('method_not_found');
    expect((await post(good)).status).toBe(200);
  });

  test('nor how large it is', async () => {
    const body = new Uint8Array(2_097_153);
    const answer = await http.send({ verb: 'POST', path: '/nonsense', body });
    expect(codeOf(answer)).toBe('method_not_found');
  });
});

describe('02 §18: a GET with a body', () => {
  test.each(['', '{}', ' {} '])('%j is ignored', async (body) => {
    const headers = { ...json, 'content-length': String(body.length) };
    const answer = await http.send({ verb: 'GET', path: '/relay/info', body, headers });
    expect(answer.status).toBe(200);
  });

  test.each(['{"a":1}', '[]', 'null', 'x'])('%j is bad_request', async (body) => {
    const headers = { ...json, 'content-length': String(body.length) };
    const answer = await http.send({ verb: 'GET', path: '/relay/info', body, headers });
    expect(codeOf(answer)).toBe('bad_request');
  });
});

describe('headers', () => {
  test('every answer forbids storing and guessing, and lets any page read it', async () => {
    for (const answer of [await get('/relay/info'), await get('/nonsense'), await post('x')]) {
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'Retry-After',
      });
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    }
  });

  test('a preflight request is answered for every path', async () => {
    const headers = {
      origin: 'https://page.example',
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'content-type,x-svc-session',
    };
    const answer = await http.send({ verb: 'OPTIONS', path: '/profile/publish', headers });
    expect(answer.status).toBe(204);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'content-type, x-svc-session',
      'access-control-max-age': '86400',
    });
  });

  test('§8: the origin does not follow the Host header', async () => {
    const ann = await relay.register('ann');
    const { nonce } = await relay.challenge(ann.account);
    const headers = { ...json, host: 'elsewhere.example' };
    const wrong = relay.deviceProof(ann.device(), nonce, { origin: 'https://elsewhere.example' });
    const message = { verb: 'POST', path: '/auth/device/verify', headers };
    const answer = await http.send({ ...message, body: JSON.stringify(wrong) });
    expect(codeOf(answer)).toBe('invalid_signature');
    const again = relay.deviceProof(ann.device(), (await relay.challenge(ann.account)).nonce);
    expect(codeOf(await http.send({ ...message, body: JSON.stringify(again) }))).toBe('ok');
  });
});

describe('02 §5: rate limits', () => {
  test('calls without a session are counted by address, with a hint in both places', async () => {
    await using strict = await ServedRelay.start({ limits: { addressRate: 1, addressBurst: 3 } });
    const client = strict.http();
    for (let count = 0; count < 3; count += 1) {
      expect((await client.call('relay.info', {})).status).toBe(200);
    }
    const answer = await client.call('relay.info', {});
    expect(answer.status).toBe(429);
    expect(JSON.parse(answer.text)).toMatchObject({
      code: 'rate_limited',
      // The refusal costs a call too.
      data: { retry_after: 2 },
    });
    expect(answer.headers['retry-after']).toBe('2');
    const socket = await strict.socket();
    expect(await socket.call('relay.info')).toMatchObject({
      error: { code: -32030, data: { retry_after: 3 } },
    });
    strict.clock.advance(3);
    expect((await client.call('relay.info', {})).status).toBe(200);
    expect((await client.call('relay.info', {})).status).toBe(429);
  });

  test('guessing tokens is counted too', async () => {
    await using strict = await ServedRelay.start({ limits: { addressRate: 1, addressBurst: 2 } });
    const client = strict.http();
    const guess = async () =>
      codeOf(await client.call('message.timeline.sync', {}, { token: 'x' }));
    expect([await guess(), await guess(), await guess()]).toEqual([
      'unauthorized',
      'unauthorized',
      'rate_limited',
    ]);
  });

  test('§18: bytes count when they arrive: a body waits, the next request is refused', async () => {
    const limits = { addressBytes: 100_000, addressBytesBurst: 100_000 };
    await using strict = await ServedRelay.start({ limits });
    const client = strict.http();
    const send = (length: number) =>
      client.send({
        verb: 'POST',
        path: '/auth/challenge',
        headers: json,
        body: 'x'.repeat(length),
      });
    const late = send(300_000);
    let refused = await send(10);
    while (codeOf(refused) !== 'rate_limited') refused = await send(10);
    expect(refused.headers['retry-after']).toBe('1');
    expect(JSON.parse(refused.text).data).toEqual({ retry_after: 1 });
    let answered: string | undefined;
    void late.then((answer) => {
      answered = codeOf(answer);
    });
    while (answered === undefined) {
      strict.clock.advance(1);
      for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
    }
    expect(answered).toBe('bad_request');
    strict.clock.advance(4);
    expect(codeOf(await send(10))).toBe('bad_request');
  });

  test('a good token counts for its account, however long it was not used', async () => {
    await using strict = await ServedRelay.start({ limits: { addressRate: 1, addressBurst: 16 } });
    const ann = new Person(strict, 'ann');
    const tokens: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      tokens.push((await strict.logInAccount(ann)).token);
    }
    for (const token of tokens) {
      const answer = await strict.http().call('device.state.publish', {}, { token });
      expect(codeOf(answer)).toBe('bad_request');
    }
  });

  test('a good token of another origin is counted as a bad one is', async () => {
    const ports = ['https://127.0.0.1:0/svc/v1', 'https://localhost:0/b/svc/v1'];
    await using strict = await ServedRelay.start({
      limits: { addressRate: 1, addressBurst: 5 },
      public: { https: ports },
    });
    const { token } = await strict.logInAccount(new Person(strict, 'ann'));
    const use = async (index: number) =>
      codeOf(await strict.http(index).call('device.state.publish', {}, { token }));
    expect(await use(0)).toBe('bad_request');
    expect([await use(1), await use(1), await use(1)]).toEqual([
      'unauthorized',
      'unauthorized',
      'rate_limited',
    ]);
  });

  test('so are calls that need a session on a connection that has none, or none any more', async () => {
    await using strict = await ServedRelay.start({ limits: { addressRate: 1, addressBurst: 20 } });
    const ann = await strict.register('ann');
    const [unbound, dead] = [await strict.socket(), await strict.socket()];
    await strict.bindDevice(dead, ann.device());
    strict.clock.advance(86_400);
    for (const socket of [unbound, dead]) {
      for (let count = 0; count < 20; count += 1) {
        const { error } = await socket.call('message.timeline.sync', {});
        expect(error?.code).toBe(-32001);
      }
      const { error } = await socket.call('message.timeline.sync', {});
      expect(error).toMatchObject({ code: -32030, data: { retry_after: 2 } });
      strict.clock.advance(21);
    }
  });

  test('an account is counted over both transports, and apart from others', async () => {
    await using strict = await ServedRelay.start({ limits: { accountRate: 2, accountBurst: 6 } });
    const ann = await strict.register('ann');
    const bob = await strict.register('bob');
    strict.clock.advance(10);
    const [a, b] = [await strict.logInDevice(ann), await strict.logInDevice(bob)];
    const socket = await strict.socket();
    await strict.bindDevice(socket, ann.device());
    const sync = async (token: string) =>
      codeOf(await strict.http().call('message.timeline.sync', {}, { token }));
    for (let count = 0; count < 3; count += 1) {
      expect(await sync(a.token)).toBe('ok');
      expect(await socket.call('message.timeline.sync', {})).toHaveProperty('result');
    }
    expect(await sync(a.token)).toBe('rate_limited');
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32030);
    expect(await sync(b.token)).toBe('ok');
  });
});

describe('02 §18: precedence', () => {
  test('session and mode come before the structure of parameters', async () => {
    const broken = { verb: 'PUT', path: '/profile/publish', headers: json, body: '[]' };
    expect(codeOf(await http.send(broken))).toBe('unauthorized');
    expect(codeOf(await get('/message/timeline/sync?limit=x'))).toBe('unauthorized');
    const ann = await relay.register('ann');
    const { token } = await relay.logInAccount(ann);
    const headers = { ...json, 'x-svc-session': token };
    expect(codeOf(await http.send({ ...broken, headers }))).toBe('forbidden');
  });

  test('the text comes before the session', async () => {
    const broken = { verb: 'PUT', path: '/profile/publish', headers: json, body: '{' };
    expect(codeOf(await http.send(broken))).toBe('bad_request');
  });
});

test('nothing of what is refused is stored', async () => {
  const ann = await relay.register('ann');
  const { token } = await relay.logInDevice(ann);
  const before = await dump(relay.server.context.storage);
  const state = JSON.stringify(await ann.state());
  const bodies = [
    '',
    '{',
    '[]',
    'null',
    `${state}x`,
    state.slice(1),
    state.replace('"rev', '"ver'),
  ];
  for (const [verb, path] of [
    ['PUT', '/device/state/publish'],
    ['PUT', '/profile/publish'],
    ['POST', '/message/send'],
  ] as const) {
    for (const body of bodies) {
      const headers = { ...json, 'x-svc-session': token };
      expect(codeOf(await http.send({ verb, path, headers, body }))).toBe('bad_request');
      expect(codeOf(await http.send({ verb, path, headers: json, body: state }))).not.toBe('ok');
    }
  }
  expect(await dump(relay.server.context.storage)).toEqual(before);
});

test('an unexpected failure shows a number and nothing else', async () => {
  relay.faults.beforeStatement = () => {
    throw new Error('secret of the database');
  };
  const answer = await post(good);
  delete relay.faults.beforeStatement;
  expect(answer.status).toBe(503);
  const { code, message } = JSON.parse(answer.text);
  expect(code).toBe('internal_error');
  expect(message).toMatch(/^internal error [\w-]{12}$/);
});

describe('slow and half-open peers', () => {
  async function raw(of: ServedRelay): Promise<{ socket: TLSSocket; text: Promise<string> }> {
    const { hostname, port } = new URL(of.server.https[0] as string);
    const socket = connect({ host: hostname, port: Number(port), ca: of.ca });
    let received = '';
    socket.on('data', (data) => {
      received += data;
    });
    socket.on('error', () => {});
    const text = new Promise<string>((resolve) => socket.on('close', () => resolve(received)));
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    return { socket, text };
  }

  test('a body that never comes costs a connection for the time allowed', async () => {
    const { socket, text } = await raw(relay);
    const continued = once(socket, 'data');
    socket.write(
      'POST /svc/v1/auth/challenge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        'Expect: 100-continue\r\nContent-Length: 100\r\n\r\n',
    );
    await continued;
    socket.write('{');
    relay.clock.advance(30);
    const answer = await text;
    expect(answer).toContain('HTTP/1.1 503');
    expect(answer).toContain('"code":"temporarily_unavailable"');
  });

  test.each([
    ['that no method has', '/no/method'],
    ['that cannot be decoded', '/%'],
  ])(
    '02 §18: the body of a request for a path %s ends its connection if it is not whole in time',
    async (_, path) => {
      // Long enough for Node's own timeouts to end nothing before.
      const limits = { requestTimeout: 300_000 };
      await using patient = await ServedRelay.start({ limits });
      const { socket, text } = await raw(patient);
      const answered = once(socket, 'data');
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{`);
      await answered;
      patient.clock.advance(300);
      expect(await text).toMatch(/^HTTP\/1.1 400 (?![\s\S]*HTTP)/);
    },
  );

  test('02 §18: a body whose first bytes came with the headers of a refused request is dropped up to the limit', async () => {
    await using other = await ServedRelay.start({ limits: { droppedBodyBytes: 100_000 } });
    const { socket, text } = await raw(other);
    const answered = once(socket, 'data');
    socket.write('POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n{');
    await answered;
    let sent = 0;
    const piece = Buffer.alloc(100_000);
    const send = () => {
      sent += 1;
      if (sent <= 199) socket.write(piece, (error) => error ?? send());
    };
    send();
    expect(await text).toContain('method_not_found');
    // The system takes some megabytes that no one reads.
    expect(sent).toBeLessThan(150);
  });

  test('a TLS handshake that never ends is ended', async () => {
    const { createConnection } = await import('node:net');
    const { hostname, port } = new URL(relay.server.https[0] as string);
    const socket = createConnection(Number(port), hostname);
    socket.on('error', () => {});
    await once(socket, 'connect');
    // Whether the relay has accepted it yet is not seen from here.
    while (!socket.closed) {
      relay.clock.advance(30);
      await new Promise((go) => setImmediate(go));
    }
    expect(socket.bytesRead).toBe(0);
  });

  test('what is no HTTP is refused and the relay goes on', async () => {
    const { socket, text } = await raw(relay);
    socket.write('nonsense\r\n\r\n');
    const answer = await text;
    expect(answer).toMatch(/^HTTP\/1.1 400/);
    expect(answer).toContain('"code":"bad_request"');
    expect((await post(good)).status).toBe(200);
  });

  test('§18: one too many of an address replaces the oldest without a session', async () => {
    await using small = await ServedRelay.start({ limits: { connectionsPerAddress: 2 } });
    const [first, second] = [await raw(small), await raw(small)];
    const answer = await small.http().call('relay.info', {});
    expect(answer.status).toBe(200);
    expect(await first.text).toBe('');
    expect(second.socket.destroyed).toBe(false);
    second.socket.destroy();
    const replaced = { reason: 'replaced by a newer connection' };
    expect(small.server.context.metrics.value('connections_refused', replaced)).toBe(1);
  });
});
