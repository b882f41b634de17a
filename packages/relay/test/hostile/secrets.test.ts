/**
 * Nothing secret leaves a relay by a way that is not meant for it: logs at their most talkative,
 * metrics, health, errors, the command line and the environment of the process.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { killAll, posthouse } from '../support/command.ts';
import { dump, RelayData } from '../support/engine.ts';
import { WebSocketClient } from '../support/websocket.ts';
import { ProcessRelay } from './process-relay.ts';

let data: RelayData;
/** What must be found nowhere, by name. */
const secrets = new Map<string, string>();
/** What the relay said, by where. */
const outputs = new Map<string, string>();

/** What people write where only its reader should see it, and where it does not belong at all. */
const words = (name: string) => {
  const said = `between-us-${name}-${encodeBase64url(nodeRandom(9))}`;
  secrets.set(name, said);
  return said;
};

beforeAll(async () => {
  data = await RelayData.empty();
  await using relay = await ProcessRelay.start(data);
  await tellStory(relay);
  await misplaceSecrets(relay);
  const { pid } = relay.command.child;
  for (const name of ['cmdline', 'environ', 'comm', 'limits']) {
    outputs.set(name, readFileSync(`/proc/${pid}/${name}`, 'latin1'));
  }
  for (const path of ['health', 'metrics']) {
    outputs.set(path, await (await fetch(`${relay.operations}/${path}`)).text());
  }
  outputs.set('errors', relay.errors.join('\n'));
  await relay[Symbol.asyncDispose]();
  outputs.set('standard output', relay.command.output.text);
  outputs.set('standard error', relay.command.output.errors);
  for (const [index, secret] of relay.secrets.entries()) secrets.set(`session ${index}`, secret);
  await addStoredSecrets();
});
afterAll(async () => {
  killAll();
  await data[Symbol.asyncDispose]();
});

async function tellStory(relay: ProcessRelay): Promise<void> {
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben');
  await ann.publishProfile({ nickname: 'ann' });
  const grant = ann.grant(ben);
  secrets.set('grant', Object.values(grant.signatures)[0] as string);
  const invite = ann.invite();
  secrets.set('contact invite', invite.device_signature);
  const message = ben.message(ann, { authorization: grant, text: words('message') });
  secrets.set('ciphertext', message.envelope.payload.ciphertext);
  secrets.set('key box', message.recipient_boxes[0]?.sealed_key as string);
  await relay.call('message.send', message, { session: ben.session() });
  const second = ben.message(ann, { authorization: invite, text: words('second message') });
  await relay.call('message.send', second, { session: ben.session() });
  const group = await TestGroup.create(relay, ann, { name: words('group name') });
  const { invite_id } = await group.invite();
  secrets.set('group invitation', invite_id);
  await group.apply(ben, { invite_id });
  const approval = group.approval([ben]);
  secrets.set(
    'client secret box',
    approval.client_secret_boxes[ben.account]?.sealed_secret as string,
  );
  await group.approve([ben]);
  secrets.set('client secret', encodeBase64url(group.secret));
  await group.rotate();
  const { groupId: group_id } = group;
  await relay.call('group.key.sync', { group_id, after: 0 }, { session: ben.session() });
  const channel = await TestChannel.create(relay, ann);
  const target_sequence = await channel.post({ body: text('for all') });
  const report = { channel_id: channel.channelId, target_sequence, reason: words('report') };
  await relay.call('channel.post.report', report, { session: ben.session() });
}

/** Sends secrets where none belong: in paths, headers, methods, broken bodies and wrong members. */
async function misplaceSecrets(relay: ProcessRelay): Promise<void> {
  const ann = [...relay.people.values()][0] as Person;
  const token = await relay.logIn(ann.session());
  const json = { 'content-type': 'application/json', 'x-svc-session': token };
  const send = async (verb: string, path: string, headers: object, body?: string) => {
    const message = { verb, path, headers: { ...headers } as Record<string, string> };
    const answer = await relay.client.send({ ...message, ...(body !== undefined && { body }) });
    if (answer.status >= 300) relay.errors.push(answer.text);
  };
  await send('GET', `/profile/resolve?account=${words('query')}&token=${token}`, json);
  await send('GET', `/${words('path')}/${token}`, {});
  await send('PUT', '/profile/publish', json, `{"${words('broken body')}`);
  const nested = { [words('member name')]: { a: words('member') }, nickname: words('nickname') };
  await send('PUT', '/profile/publish', json, JSON.stringify(nested));
  await send('POST', '/message/send', json, JSON.stringify({ envelope: words('envelope') }));
  await send('POST', '/auth/device/verify', json, JSON.stringify({ nonce: words('nonce') }));
  await send('GET', '/relay/info', { 'x-svc-session': words('wrong token') });
  await send('GET', '/profile/resolve?account=x', { 'x-svc-session': words('no token') });
  await send('GET', '/relay/info', { 'x-forwarded-for': words('forwarded'), cookie: token });
  const ca = readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8');
  await WebSocketClient.open(`${relay.wss}/${words('upgrade')}?token=${token}`, ca).catch(() => {});
  using socket = await WebSocketClient.open(relay.wss, ca);
  for (const [method, params] of [
    [words('method'), { [words('parameter')]: token }],
    ['auth.device.verify', { nonce: token, device_signature: words('signature') }],
    ['message.send', { authorization: words('authorization') }],
  ] as const) {
    relay.errors.push(JSON.stringify(await socket.call(method, params)));
  }
  relay.errors.push(
    JSON.stringify(await socket.send(`{"id":1,"x":"${words('envelope member')}",`)),
  );
}

/** What the relay keeps for itself: its keys, and the secrets of the groups. */
async function addStoredSecrets(): Promise<void> {
  for (const name of ['relay.key', 'peer.key']) {
    secrets.set(name, readFileSync(join(data.path, 'keys', name), 'utf8').trim());
  }
  await using storage = await data.open();
  const { group_epochs: epochs = [], auth_sessions: sessions = [] } = await dump(storage);
  for (const [index, row] of epochs.entries()) {
    secrets.set(`relay secret ${index}`, String(row.relay_secret));
  }
  for (const [index, row] of sessions.entries()) {
    secrets.set(`token hash ${index}`, String(row.token_hash));
  }
}

test('the story has secrets of every kind, and the relay said something everywhere', () => {
  const names = [...secrets.keys()];
  for (const kind of [
    'session 0',
    'relay.key',
    'relay secret 0',
    'token hash 0',
    'client secret',
  ]) {
    expect(names).toContain(kind);
  }
  for (const [where, output] of outputs) expect(output, where).not.toBe('');
  expect(outputs.get('standard error')).toContain('"msg":"call answered"');
});

test.each([
  ...['standard output', 'standard error', 'health', 'metrics', 'errors'],
  ...['cmdline', 'environ', 'comm'],
])('%s has none of them, in no encoding', (where) => {
  const output = outputs.get(where) as string;
  for (const [name, secret] of secrets) {
    for (const form of formsOf(secret)) {
      expect(output.includes(form) && `${where} has ${name}`).toBe(false);
    }
  }
});

test.each([
  ['an address that cannot be reached', ['serve'], 'postgres://relay:%@127.0.0.1:1/relay'],
  ['an address of another kind', ['serve'], 'mysql://relay:%@127.0.0.1:1/relay'],
  ['the configuration shown', ['config', 'explain'], 'postgres://relay:%@127.0.0.1:1/relay'],
])('the password of the database is not said: %s', async (_, args, url) => {
  const password = encodeBase64url(nodeRandom(12));
  const options = ['--dev', '--data', data.path, '--log', 'debug'];
  const command = posthouse([...args, ...options], {
    POSTHOUSE_STORAGE_ENGINE: 'postgres',
    POSTHOUSE_STORAGE_URL: url.replace('%', password),
  });
  await command.ended;
  const { text, errors } = command.output;
  expect(text + errors).not.toBe('');
  expect((text + errors).includes(password)).toBe(false);
});

/** The ways in which a secret may be written. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret, 'base64url');
  const forms = [secret, encodeURIComponent(secret)];
  if (/^[\w-]{43,}$/.test(secret)) forms.push(bytes.toString('hex'), bytes.toString('base64'));
  return forms;
}
