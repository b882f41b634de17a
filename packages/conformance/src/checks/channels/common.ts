/** Rules of all channel methods: session, form, signature, size (06 §8, §8.1, §8.6; 02 §2). */
import { type HttpVerb, methods, Network, signAsDevice } from '@posthouse/protocol';
import { isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms } from '../../assert.ts';
import {
  type ChannelMethodName,
  callTemplates,
  type PreparedCall,
  prepareCall,
} from '../../channels/channel-calls.ts';
import { paddedTo } from '../../channels/channel-objects.ts';
import { assertUnchanged } from '../../channels/channel-reader.ts';
import { type Check, checksOf } from '../../check.ts';
import { malformed, malformedQueries } from '../../fixtures/malformed.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';

/** Malformed copies that cannot be signed: Canonical JSON has no fractions. */
const unsigned = /signature|context|fraction/;

/** Yields the malformed copies of a call, signed if they can be signed. */
function* malformedCalls(
  { fixture: { channel }, by, params }: PreparedCall,
  method: ChannelMethodName,
): Generator<readonly [string, JsonObject]> {
  const { signed, harmless } = callTemplates[method];
  for (const [what, broken] of malformed(params)) {
    if (harmless?.test(what)) continue;
    yield [what, signed && !unsigned.test(what) ? channel.sign(broken, by) : broken];
  }
}

const verbs: readonly HttpVerb[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Checks session, form, unknown members and HTTP verb of a method. */
function callChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed } = callTemplates[method];
  const http = methods[method].http as readonly HttpVerb[];
  const inQuery = http.includes('GET');

  check(
    'session',
    {
      source: '06 §8, 02 §10',
      title: 'needs a device session: unauthorized without, forbidden in an account session',
    },
    async (context) => {
      const { by, params } = await prepareCall(context, method);
      const anonymous = await context.anonymous();
      await context.expectError(anonymous, { method, params }, 'unauthorized');
      anonymous.useSession('never-issued');
      await context.expectError(anonymous, { method, params }, 'unauthorized');
      const accountSession = await context.accountSession(by.account);
      await context.expectError(accountSession, { method, params }, 'forbidden');
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'form',
    {
      source: '06 §4, §6, §8',
      title: 'refuses every malformed member with bad_request and stores nothing',
    },
    async (context) => {
      const ready = await prepareCall(context, method);
      const { by, params } = ready;
      const calls =
        inQuery && context.transport === 'https'
          ? malformedQueries(params)
          : malformedCalls(ready, method);
      const refused = { by, method, codes: ['bad_request'] } as const;
      await assertUnchanged(ready.fixture.channel, () => assertAllRefused(refused, calls));
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'extension',
    { source: '02 §2.4, §2.5', title: 'accepts unknown members' },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const unknown = { future: { some: ['thing', { of: 1 }], $type: 'unknown' }, ünknöwn: '' };
      const flat = { future: 'thing', ünknöwn: '' };
      const extended = {
        ...params,
        ...(inQuery && context.transport === 'https' ? flat : unknown),
      };
      const call = signed ? fixture.channel.sign(extended, by) : extended;
      await context.expectOk(by.caller, method, call);
    },
  );

  if (http.length > 0) {
    check(
      'verb',
      { source: '02 §2.1, §14', title: 'has one HTTP verb', transports: ['https'] },
      async (context) => {
        const { by, params } = await prepareCall(context, method);
        for (const verb of verbs.filter((other) => !http.includes(other))) {
          const answer = await by.caller.call(method, verb === 'GET' ? {} : params, verb);
          const code = answer.ok ? 'success' : answer.code;
          assertConforms(code === 'method_not_found', `method_not_found of ${verb}, not ${code}`);
        }
        await context.expectOk(by.caller, method, params);
      },
    );
  }

  return list;
}

/** Checks signature, type and size of parameters that are a signed object. */
function objectChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, bytes } = callTemplates[method];
  if (!signed || bytes === undefined) return list;

  check(
    'signature',
    {
      source: '06 §8, §14',
      title: 'answers invalid_signature to an altered signature or one of another device',
    },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method, { devices: 2 });
      const { channel } = fixture;
      const stranger = { device: await context.account().device() };
      const elsewhere = signAsDevice(otherNetwork(context.network), params, by.device.signer);
      const wrong: Readonly<Record<string, JsonObject>> = {
        'bit flipped': { ...params, device_signature: tampered(String(params.device_signature)) },
        'member added': { ...params, added: 1 },
        'member changed': { ...params, ...changed(params) },
        "the account's other device": channel.sign(params, withDevice(by, 1)),
        'another account': channel.sign(params, stranger),
        'another network': elsewhere,
      };
      const refused = { by, method, codes: ['invalid_signature'] } as const;
      await assertUnchanged(channel, () => assertAllRefused(refused, Object.entries(wrong)));
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'type',
    { source: '06 §8', title: 'refuses the type of another object' },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const types = ['channel.descriptor', 'channel.post', 'channel.post.edit', 'channel'];
      const wrong = [...types, 'channel.post.delete', 'message.envelope']
        .map((name) => context.network.type(name))
        .concat('other.channel.post', String(params.$type).toUpperCase())
        .filter((type) => type !== params.$type)
        .map(($type) => [$type, fixture.channel.sign({ ...params, $type }, by)] as const);
      await assertAllRefused({ by, method, codes: ['bad_request'] }, wrong);
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'size',
    { source: '06 §4, §6', title: `accepts ${bytes} bytes of Canonical JSON and refuses one more` },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const { channel } = fixture;
      const make = (filling: string) => channel.sign({ ...params, filling }, by);
      const large = { method, params: paddedTo(bytes + 1, make) };
      await assertUnchanged(channel, () =>
        context.expectError(by.caller, large, 'request_too_large'),
      );
      await context.expectOk(by.caller, method, paddedTo(bytes, make));
    },
  );

  return list;
}

/** Makes a network that differs only in its context, which no object contains. */
function otherNetwork({ context, word, primitives }: Network): Network {
  const other = context.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  return new Network({ context: other, word, primitives });
}

/** Makes a well-formed change of one member of a signed object. */
function changed({ name, body, reason }: JsonObject): JsonObject {
  if (typeof name === 'string') return { name: `${name}!` };
  if (isJsonObject(body)) return { body: { ...body, text: `${body.text}!` } };
  return { reason: `${reason}!` };
}

const names = Object.keys(callTemplates) as ChannelMethodName[];

export const channelCommonChecks: readonly Check[] = names.flatMap((method) => [
  ...callChecks(method),
  ...objectChecks(method),
]);
