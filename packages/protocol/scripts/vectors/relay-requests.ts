/** Vectors of requests and notifications between relays (07 §C2, §C3, §C5 to §C9). */
import { deriveDeviceId, sealMessage, signingDevice } from '../../src/index.ts';
import type { JsonObject, JsonValue } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  deterministic,
  network,
  relayKey,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';

const operation = 'relay_rpc.request';
const annCertificate = certificateOf(ann, ann.device);
const account = ben.signer.account;
const device_id = deriveDeviceId(network, certificateOf(ben, ben.device));
const query = { account, device_id };

/** From Ben, for Ann. */
const grant = (() => {
  const body = {
    $type: network.type('contact.grant'),
    grantor: account,
    grantee: ann.signer.account,
    expires_at: start + 1_000,
  };
  const { signature } = signedBy(ben.device, body, 'signature');
  return { ...body, signatures: { [device_id]: signature } };
})();

const signedQuery = (changes: JsonObject = {}) =>
  signedBy(
    ann.device,
    {
      $type: network.type('device.state.resolve'),
      account,
      authorization: grant,
      signer_certificate: annCertificate,
      created_at: start + 50,
      ...changes,
    },
    'device_signature',
  );

const { envelope, recipient_boxes } = sealMessage(network, {
  from: signingDevice(network, ann.signer.account, ann.device),
  to: account,
  createdAt: start + 50,
  content: {
    $type: network.type('message.direct'),
    body: { content_type: 'text/plain', text: 'between relays' },
  },
  recipients: [certificateOf(ben, ben.device)],
  senders: [],
  random: deterministic('relay requests'),
});
const [box] = recipient_boxes;
const delivery = { envelope, recipient_boxes, signer_certificate: annCertificate } as JsonObject;
const toSelf = signedBy(
  ann.device,
  { ...without({ ...envelope }, 'device_signature'), to: ann.signer.account },
  'device_signature',
);
const boxesOf = (count: number): JsonValue[] =>
  Array.from({ length: count }, (_, index) => ({
    ...box,
    device_id: `dev_${'ABCDEFGHI'[index]}${'A'.repeat(21)}`,
  }));

const call = (method: string, params: JsonValue, id: JsonValue = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const notification = (params: JsonValue, method = 'device.status.changed') =>
  JSON.stringify({ jsonrpc: '2.0', method, params });

const badRequest = -32_602;

export function relayRequestVectors(): VectorFile {
  const file = new VectorFile('Requests of relay RPC', '07 §C2, §C3, §C5 to §C9');
  envelopeCases(file);
  queryCases(file);
  deliveryCases(file);
  notificationCases(file);
  return file;
}

const answer = (code: number, id: JsonValue = 1) => ({ answer: { code, id } });

function valid(file: VectorFile, name: string, method: string, params: JsonValue): void {
  const expected = { request: { id: 1, method } };
  file.exact(`${method}: ${name}`, operation, { text: call(method, params) }, expected);
}

function bad(
  file: VectorFile,
  { name, method, params }: { name: string; method: string; params: JsonValue },
): void {
  const expected = answer(badRequest);
  file.exact(`${method}: ${name}`, operation, { text: call(method, params) }, expected);
}

function envelopeCases(file: VectorFile): void {
  const method = 'profile.resolve';
  const params = { account };
  const text = JSON.stringify(params);
  for (const [name, id] of [
    ['a text as id', 'a-9'],
    ['an empty id', ''],
    ['an id of 128 bytes', 'é'.repeat(64)],
    ['id zero', 0],
    ['the smallest id', Number.MIN_SAFE_INTEGER],
  ] as const) {
    file.exact(name, operation, { text: call(method, params, id) }, { request: { id, method } });
  }
  const root = JSON.stringify({ zz: [0], jsonrpc: '2.0', id: 1, method, params });
  file.exact('unknown root members', operation, { text: root }, { request: { id: 1, method } });
  for (const [name, source, code, id] of [
    ['nothing', '', -32_700, null],
    ['not JSON', '{"jsonrpc":"2.0"', -32_700, null],
    ['two values', `${call(method, params)}{}`, -32_700, null],
    ['a batch', `[${call(method, params)}]`, -32_600, null],
    ['a text', '"2.0"', -32_600, null],
    ['another version', `{"jsonrpc":"1.0","id":1,"method":"${method}"}`, -32_600, 1],
    ['the version as a number', `{"jsonrpc":2,"id":1,"method":"${method}"}`, -32_600, 1],
    ['no version', `{"id":1,"method":"${method}","params":${text}}`, -32_600, 1],
    ['no method', '{"jsonrpc":"2.0","id":1}', -32_600, 1],
    ['method as a number', '{"jsonrpc":"2.0","id":1,"method":7}', -32_600, 1],
    ['id null', call(method, params, null), -32_600, null],
    ['id an object', call(method, params, {}), -32_600, null],
    ['an id of 129 bytes', call(method, params, `${'é'.repeat(64)}a`), -32_600, null],
    ['a fraction as id', `{"jsonrpc":"2.0","id":1.5,"method":"${method}"}`, -32_600, null],
    [
      'J4: the id twice',
      `{"jsonrpc":"2.0","id":1,"id":1,"method":"${method}","params":${text}}`,
      -32_600,
      null,
    ],
    [
      'J6: a fraction in an unknown root member',
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${text},"zz":0.5}`,
      -32_600,
      1,
    ],
    [
      'J6: a fraction in params',
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"account":0.5}}`,
      badRequest,
      1,
    ],
    [
      'J4: a repeated name in params',
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"account":"a","account":"b"}}`,
      badRequest,
      1,
    ],
    ['a method of clients', call('message.send', delivery), -32_601, 1],
    ['a method in another case', call('Profile.resolve', params), -32_601, 1],
    ['an unknown method with params that are none', call('zz', null), -32_601, 1],
    ['the notification as a request', call('device.status.changed', query), -32_601, 1],
  ] as const) {
    file.exact(name, operation, { text: source }, answer(code, id));
  }
  const missing = JSON.stringify({ jsonrpc: '2.0', id: 1, method });
  file.exact('no params where one is required', operation, { text: missing }, answer(badRequest));
  for (const [name, value] of [
    ['null', null],
    ['an array', [account]],
    ['a text', account],
  ] as const) {
    file.exact(`params: ${name}`, operation, { text: call(method, value) }, answer(badRequest));
  }
}

/** Faults of the member `account`, which three of the methods have. */
const accountFaults = (rest: JsonObject = {}) =>
  [
    ['no account', rest],
    ['J9: account null', { ...rest, account: null }],
    ['a checksum that is wrong', { ...rest, account: `${account.slice(0, -1)}q` }],
    ['an account of another chain', { ...rest, account: account.replace('102:', '103:') }],
    ['K2: $context', { ...rest, account, $context: network.context }],
    ['J9: null in an unknown member', { ...rest, account, zz: null }],
  ] as const;

function queryCases(file: VectorFile): void {
  valid(file, 'a device', 'device.status', query);
  valid(file, 'U1: unknown members', 'device.status', { ...query, zz: [0] });
  for (const [name, params] of [
    ...accountFaults({ device_id }),
    ['no device', { account }],
    ['a device ID with pad bits', { account, device_id: `dev_${'A'.repeat(21)}B` }],
    ['a device ID without its prefix', { account, device_id: device_id.slice(4) }],
  ] as const) {
    bad(file, { name, method: 'device.status', params });
  }
  valid(file, 'an account', 'profile.resolve', { account });
  for (const [name, params] of accountFaults()) {
    bad(file, { name, method: 'profile.resolve', params });
  }
  const method = 'device.state.resolve';
  valid(file, 'the public form', method, { account });
  valid(file, 'the signed form', method, signedQuery());
  valid(file, 'the signed form with unknown members', method, signedQuery({ zz: 1 }));
  const forged = tampered(signedQuery().device_signature);
  valid(file, 'a signature that is wrong: verified after the home is known', method, {
    ...signedQuery(),
    device_signature: forged,
  });
  for (const [name, params] of [
    ...accountFaults(),
    ['a type and nothing else of the signed form', { account, $type: signedQuery().$type }],
    ['created_at and nothing else of the signed form', { account, created_at: start }],
    ['no authorization', without(signedQuery(), 'authorization')],
    ['no signature', without(signedQuery(), 'device_signature')],
    ['no certificate', without(signedQuery(), 'signer_certificate')],
    ['Y1: a successor type', signedQuery({ $type: network.type('device.state.resolve.v2') })],
    ['an authorization of another type', signedQuery({ authorization: annCertificate })],
    [
      'a certificate whose account is not that of its key',
      signedQuery({
        signer_certificate: certificateOf(ann, ann.device, { account: relayKey.account }),
      }),
    ],
  ] as const) {
    bad(file, { name, method, params });
  }
}

function deliveryCases(file: VectorFile): void {
  const method = 'message.deliver';
  valid(file, 'without a credential', method, delivery);
  valid(file, 'with a grant', method, { ...delivery, authorization: grant });
  valid(file, 'with 8 boxes', method, { ...delivery, recipient_boxes: boxesOf(8) });
  valid(file, 'U1: unknown members, as the boxes of the sender', method, {
    ...delivery,
    sender_boxes: recipient_boxes as unknown as JsonValue,
  });
  const device_signature = tampered(envelope.device_signature);
  valid(file, 'a signature that is wrong: verified after the home is known', method, {
    ...delivery,
    envelope: { ...envelope, device_signature },
  });
  for (const [name, params] of [
    ['no envelope', without(delivery, 'envelope')],
    ['no boxes', without(delivery, 'recipient_boxes')],
    ['no certificate', without(delivery, 'signer_certificate')],
    ['an empty list of boxes', { ...delivery, recipient_boxes: [] }],
    ['9 boxes', { ...delivery, recipient_boxes: boxesOf(9) }],
    ['two boxes of one device', { ...delivery, recipient_boxes: [box, box] }],
    ['a message to its own sender', { ...delivery, envelope: toSelf }],
    [
      'the certificate of another device',
      { ...delivery, signer_certificate: certificateOf(ann, ann.second) },
    ],
    [
      'the certificate of another account',
      { ...delivery, signer_certificate: certificateOf(ben, ann.device) },
    ],
    ['an authorization of another type', { ...delivery, authorization: annCertificate }],
    ['an envelope without its payload', { ...delivery, envelope: without(envelope, 'payload') }],
    ['K2: $context', { ...delivery, $context: network.context }],
    ['J9: null in an unknown member', { ...delivery, zz: null }],
    ['J9: authorization null', { ...delivery, authorization: null }],
  ] as const) {
    bad(file, { name, method, params: params as JsonValue });
  }
}

function notificationCases(file: VectorFile): void {
  const method = 'device.status.changed';
  const expected = { notification: method };
  file.exact(`${method}: a device`, operation, { text: notification(query) }, expected);
  const unknown = notification({ ...query, zz: [0] });
  file.exact(`${method}: unknown members`, operation, { text: unknown }, expected);
  const ignored = { ignored: true };
  for (const [name, params] of [
    ...accountFaults({ device_id }),
    ['no device', { account }],
  ] as const) {
    file.exact(`${method}: ${name}`, operation, { text: notification(params) }, ignored);
  }
  for (const other of ['device.status', 'message.deliver', 'zz']) {
    const text = notification(other === 'message.deliver' ? delivery : query, other);
    file.exact(`${other} as a notification`, operation, { text }, ignored);
  }
}
