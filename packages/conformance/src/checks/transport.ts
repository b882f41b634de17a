import { rpcErrors } from '@posthouse/protocol';
import { isJsonObject, type JsonObject, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import type { TestContext } from '../fixtures/test-context.ts';
import type { HttpsCaller, WssCaller } from '../transport/caller.ts';
import type { HttpMessage } from '../transport/plain-http.ts';

const http = checksOf('transport.https');
const onHttps = { transports: ['https'] } as const;

/** Sends a raw HTTP message and asserts a `RelayError` with the code. */
async function httpFails(context: TestContext, message: HttpMessage, code: string): Promise<void> {
  const answer = await context.https().raw('', message);
  assertConforms(
    !answer.ok && answer.code === code,
    `refused with ${code}, not ${answer.ok ? 'accepted' : answer.code}`,
  );
}

/** Builds a POST to `auth.challenge`, which needs no session. */
function post(caller: HttpsCaller, body: string | Uint8Array, type: string): HttpMessage {
  return {
    verb: 'POST',
    path: caller.path('auth.challenge'),
    headers: type === '' ? {} : { 'content-type': type },
    body,
  };
}

for (const type of [
  'application/json',
  'application/json; charset=utf-8',
  'Application/JSON;charset="UTF-8"',
  'application/json ; charset=utf-8',
]) {
  http.check(
    `content-type:${type}`,
    { source: '02 §2.3', title: `accepts ${type}`, ...onHttps },
    async (context) => {
      const caller = context.https();
      const body = JSON.stringify({ account: context.account().id });
      const answer = await caller.raw('auth.challenge', post(caller, body, type));
      assertConforms(answer.ok, `${type} is accepted`);
    },
  );
}

for (const type of [
  '',
  'text/plain',
  'application/json; charset=utf-16',
  'application/json; charset=',
  'application/jsonx',
]) {
  http.check(
    `content-type-refused:${type}`,
    { source: '02 §2.3, §18', title: `refuses ${type || 'no content type'}`, ...onHttps },
    async (context) => {
      const body = JSON.stringify({ account: context.account().id });
      await httpFails(context, post(context.https(), body, type), 'bad_request');
    },
  );
}

/** Bodies with a valid account that each break one rule of 01 §2.1. */
const brokenTexts: Readonly<Record<string, (account: string) => string | Uint8Array>> = {
  'not-json': () => '{"account":',
  empty: () => '',
  trailing: (account) => `{"account":"${account}"} x`,
  'byte-order-mark': (account) => `\ufeff{"account":"${account}"}`,
  'invalid-utf8': () => Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d),
  'repeated-name': (account) => `{"account":"${account}","account":"${account}"}`,
  'escaped-repeated-name': (account) => `{"account":"${account}","\\u0061ccount":"x"}`,
  'lone-surrogate': (account) => `{"account":"${account}","x":"\\ud800"}`,
  fraction: (account) => `{"account":"${account}","x":1.0}`,
  exponent: (account) => `{"account":"${account}","x":1e2}`,
  'negative-zero': (account) => `{"account":"${account}","x":-0}`,
  'integer-range': (account) => `{"account":"${account}","x":9007199254740992}`,
  depth: (account) => `{"account":"${account}","x":${'['.repeat(17)}${']'.repeat(17)}}`,
  'top-level-array': () => '[]',
  'top-level-null': () => 'null',
};

for (const [word, text] of Object.entries(brokenTexts)) {
  http.check(
    `body-${word}`,
    { source: '01 §2.1, 02 §2.3', title: `refuses a body with ${word}`, ...onHttps },
    async (context) => {
      const body = text(context.account().id);
      await httpFails(context, post(context.https(), body, 'application/json'), 'bad_request');
    },
  );
}

http.check(
  'body-depth-limit',
  { source: '01 §2.1 J5', title: 'accepts a body of depth 16', ...onHttps },
  async (context) => {
    const caller = context.https();
    const body = `{"account":"${context.account().id}","x":${'['.repeat(15)}1${']'.repeat(15)}}`;
    const answer = await caller.raw('auth.challenge', post(caller, body, 'application/json'));
    assertConforms(answer.ok, 'depth 16 is accepted');
  },
);

http.check(
  'body-over-one-mebibyte',
  { source: '02 §18', title: 'accepts a body of more than 1 MiB', ...onHttps },
  async (context) => {
    const caller = context.https();
    const body = JSON.stringify({ account: context.account().id, x: 'x'.repeat(1_100_000) });
    const answer = await caller.raw('auth.challenge', post(caller, body, 'application/json'));
    assertConforms(answer.ok, 'a body of 1.1 MB is accepted');
  },
);

http.check(
  'unknown-path',
  { source: '02 §18', title: 'an unknown path is method_not_found', ...onHttps },
  async (context) => {
    const path = context.https().path('relay.nothing');
    await httpFails(context, { verb: 'GET', path }, 'method_not_found');
  },
);

http.check(
  'letter-case',
  { source: '02 §2.1', title: 'method paths are case-sensitive', ...onHttps },
  async (context) => {
    const path = context.https().path('relay.Info');
    await httpFails(context, { verb: 'GET', path }, 'method_not_found');
  },
);

http.check(
  'wrong-verb',
  { source: '02 §18', title: 'a wrong verb is method_not_found', ...onHttps },
  async (context) => {
    const caller = context.https();
    const wrong = { verb: 'GET', path: caller.path('auth.challenge') };
    await httpFails(context, wrong, 'method_not_found');
    const body = { headers: { 'content-type': 'application/json' }, body: '{}' };
    const posted = { verb: 'POST', path: caller.path('relay.info'), ...body };
    await httpFails(context, posted, 'method_not_found');
  },
);

/** Queries of `account.route.resolve`, which needs no session, and the result of each. */
const queries: Readonly<Record<string, [(account: string) => string, string]>> = {
  'percent-encoded': [(account) => `account=${encodeURIComponent(account)}`, 'not_found'],
  'percent-encoded-name': [(account) => `%61ccount=${account}`, 'not_found'],
  'unknown-name': [(account) => `account=${account}&future=1&future=2`, 'not_found'],
  repeated: [(account) => `account=${account}&account=${account}`, 'bad_request'],
  'repeated-encoded': [(account) => `account=${account}&%61ccount=${account}`, 'bad_request'],
  'malformed-percent': [(account) => `account=${account}&x=%zz`, 'bad_request'],
  'decoded-once': [
    (account) => `account=${encodeURIComponent(encodeURIComponent(account))}`,
    'bad_request',
  ],
  missing: [() => '', 'bad_request'],
  empty: [() => 'account=', 'bad_request'],
};

for (const [word, [query, code]] of Object.entries(queries)) {
  http.check(
    `query-${word}`,
    { source: '02 §2.4, §18', title: `a query field that is ${word} ends in ${code}`, ...onHttps },
    async (context) => {
      const path = context.https().path('account.route.resolve');
      const message = { verb: 'GET', path: `${path}?${query(context.account().id)}` };
      await httpFails(context, message, code);
    },
  );
}

http.check(
  'token-malformed',
  { source: '02 §4.1', title: 'a malformed or unknown token is unauthorized', ...onHttps },
  async (context) => {
    const path = context.https().path('message.timeline.sync');
    for (const token of ['x', 'A'.repeat(43), 'a b', '']) {
      const headers = { [context.network.sessionHeader]: token };
      await httpFails(context, { verb: 'GET', path, headers }, 'unauthorized');
    }
  },
);

http.check(
  'cross-origin',
  { source: '02 §18', title: 'allows calls from web pages of any origin', ...onHttps },
  async (context) => {
    const caller = context.https();
    const asked = `content-type, ${context.network.sessionHeader}`;
    const preflight = await caller.http.send({
      verb: 'OPTIONS',
      path: caller.path('message.send'),
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    });
    assertConforms(preflight.status === 204 || preflight.status === 200, 'the preflight succeeds');
    assertEqual(preflight.headers['access-control-allow-origin'], '*', 'any origin is allowed');
    const allowed = String(preflight.headers['access-control-allow-headers']).toLowerCase();
    assertConforms(
      allowed.includes(context.network.sessionHeader),
      'the session header is allowed',
    );
    const read = await caller.http.send({
      verb: 'GET',
      path: caller.path('relay.info'),
      headers: { origin: 'https://app.example' },
    });
    const exposed = String(read.headers['access-control-expose-headers']).toLowerCase();
    assertConforms(exposed.includes('retry-after'), 'Retry-After is exposed');
  },
);

const wss = checksOf('transport.wss');
const onWss = { transports: ['wss'] } as const;

/** Sends a raw text and asserts a JSON-RPC error with the code and the id. */
async function rpcFails(
  caller: WssCaller,
  text: string,
  expected: { readonly code: number; readonly id: string | number | null },
): Promise<void> {
  caller.socket.send(text);
  const answer = parseJson(await caller.socket.receive(() => true)) as JsonObject;
  assertConforms(isJsonObject(answer.error), 'an answer with an error');
  assertConforms(
    answer.error.code === expected.code,
    `error ${expected.code}, not ${answer.error.code}`,
  );
  assertConforms(answer.id === expected.id, `id ${expected.id}, not ${answer.id}`);
}

const invalidRequest = rpcErrors.invalid_request;
const invalidParams = -32602;

/** Invalid texts, and the error code and id of each answer. */
const refusedTexts: Readonly<Record<string, [string, number, string | number | null]>> = {
  'not-json': ['{"jsonrpc":"2.0","id":1', rpcErrors.parse_error, null],
  'trailing-text': [
    '{"jsonrpc":"2.0","id":1,"method":"relay.info"} x',
    rpcErrors.parse_error,
    null,
  ],
  batch: ['[{"jsonrpc":"2.0","id":1,"method":"relay.info"}]', invalidRequest, null],
  'not-an-object': ['"relay.info"', invalidRequest, null],
  'wrong-version': ['{"jsonrpc":"1.0","id":3,"method":"relay.info"}', invalidRequest, 3],
  'version-missing': ['{"id":"a","method":"relay.info"}', invalidRequest, 'a'],
  'id-missing': ['{"jsonrpc":"2.0","method":"relay.info"}', invalidRequest, null],
  'id-null': ['{"jsonrpc":"2.0","id":null,"method":"relay.info"}', invalidRequest, null],
  'id-boolean': ['{"jsonrpc":"2.0","id":true,"method":"relay.info"}', invalidRequest, null],
  'id-fraction': ['{"jsonrpc":"2.0","id":1.5,"method":"relay.info"}', invalidRequest, null],
  'id-too-long': [
    `{"jsonrpc":"2.0","id":"${'é'.repeat(65)}","method":"relay.info"}`,
    invalidRequest,
    null,
  ],
  'method-missing': ['{"jsonrpc":"2.0","id":4}', invalidRequest, 4],
  'method-number': ['{"jsonrpc":"2.0","id":4,"method":5}', invalidRequest, 4],
  'method-unknown': ['{"jsonrpc":"2.0","id":4,"method":"relay.nothing"}', -32601, 4],
  'method-case': ['{"jsonrpc":"2.0","id":4,"method":"Relay.info"}', -32601, 4],
  'params-null': ['{"jsonrpc":"2.0","id":4,"method":"relay.info","params":null}', invalidParams, 4],
  'params-array': ['{"jsonrpc":"2.0","id":4,"method":"relay.info","params":[]}', invalidParams, 4],
  'params-repeated-name': [
    '{"jsonrpc":"2.0","id":4,"method":"relay.info","params":{"a":1,"a":1}}',
    invalidParams,
    4,
  ],
  'params-fraction': [
    '{"jsonrpc":"2.0","id":4,"method":"relay.info","params":{"a":1.0}}',
    invalidParams,
    4,
  ],
  'envelope-repeated-name': [
    '{"jsonrpc":"2.0","jsonrpc":"2.0","id":4,"method":"relay.info"}',
    invalidRequest,
    4,
  ],
  'envelope-fraction': [
    '{"jsonrpc":"2.0","id":4,"method":"relay.info","x":1.0}',
    invalidRequest,
    4,
  ],
  'params-depth': [
    `{"jsonrpc":"2.0","id":4,"method":"relay.info","params":{"a":${'['.repeat(16)}${']'.repeat(16)}}}`,
    invalidParams,
    4,
  ],
};

for (const [word, [text, code, id]] of Object.entries(refusedTexts)) {
  wss.check(
    `refused-${word}`,
    { source: '02 §3.4, §4.2; 01 §19', title: `answers ${code} to ${word}`, ...onWss },
    async (context) => {
      const caller = await context.wss();
      await rpcFails(caller, text, { code, id });
      // A bad message causes one error; the connection stays open.
      await context.expectOk(caller, 'relay.info');
    },
  );
}

for (const [word, id] of [
  ['string', '"a-9"'],
  ['longest-string', `"${'é'.repeat(64)}"`],
  ['negative', '-5'],
  ['largest', '9007199254740991'],
] as const) {
  wss.check(
    `id-${word}`,
    { source: '02 §3.4, §3.5', title: `echoes a ${word} id unchanged`, ...onWss },
    async (context) => {
      const caller = await context.wss();
      caller.socket.send(`{"jsonrpc":"2.0","id":${id},"method":"relay.info"}`);
      const text = await caller.socket.receive(() => true);
      assertEqual((parseJson(text) as JsonObject).id, parseJson(id), 'the id');
    },
  );
}

wss.check(
  'extension-members',
  { source: '02 §3.8', title: 'ignores unknown members of the envelope', ...onWss },
  async (context) => {
    const caller = await context.wss();
    caller.socket.send('{"jsonrpc":"2.0","id":1,"method":"relay.info","x":{"y":[1]},"error":{}}');
    const answer = parseJson(await caller.socket.receive(() => true)) as JsonObject;
    assertConforms(answer.result !== undefined, 'the request is answered');
  },
);

wss.check(
  'params-omitted',
  { source: '02 §2.5', title: 'treats omitted and empty params alike', ...onWss },
  async (context) => {
    const caller = await context.wss();
    await context.expectOk(caller, 'relay.info');
    await context.expectOk(caller, 'relay.info', {});
  },
);

wss.check(
  'binary',
  { source: '02 §3.3', title: 'closes with 1003 on a binary message', ...onWss },
  async (context) => {
    const caller = await context.wss();
    caller.socket.send(Uint8Array.of(1, 2, 3));
    const { code } = await caller.socket.closed;
    assertConforms(code === 1003, `the connection ends with 1003, not ${code}`);
  },
);

wss.check(
  'largest-message',
  { source: '02 §3.3', title: 'accepts a message of exactly 1 MiB', ...onWss },
  async (context) => {
    const caller = await context.wss();
    caller.socket.send(messageOf(1_048_576));
    const answer = parseJson(await caller.socket.receive(() => true)) as JsonObject;
    assertConforms(answer.result !== undefined, 'the request is answered');
  },
);

wss.check(
  'oversized-message',
  { source: '02 §3.3', title: 'closes with 1009 on a message over 1 MiB', ...onWss },
  async (context) => {
    const caller = await context.wss();
    caller.socket.send(messageOf(1_048_577));
    const { code } = await caller.socket.closed;
    assertConforms(code === 1009, `the connection ends with 1009, not ${code}`);
    assertEqual(caller.socket.pending.length, 0, 'no JSON-RPC answer comes first');
  },
);

/** Builds a valid request of an exact number of bytes. */
function messageOf(bytes: number): string {
  const empty = '{"jsonrpc":"2.0","id":1,"method":"relay.info","x":""}';
  return empty.replace('"x":""', `"x":"${'x'.repeat(bytes - empty.length)}"`);
}

export const transportChecks = [...http.list, ...wss.list];
