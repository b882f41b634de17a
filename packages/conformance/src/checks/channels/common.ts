/** What holds of all channel methods alike (06 §8, §8.1, §8.6; 02 §2). */
import {
  type HttpVerb,
  isJsonObject,
  type JsonObject,
  methods,
  Network,
  signAsDevice,
} from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import {
  type ChannelMethodName,
  type ReadyChannelCall,
  readyForChannel,
  recipes,
} from '../../channels/channel-calls.ts';
import { filledTo } from '../../channels/channel-objects.ts';
import { withoutTrace } from '../../channels/channel-reader.ts';
import { type Check, checksOf } from '../../check.ts';
import { malformed, malformedQueries } from '../../fixtures/malformed.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at } from '../../fixtures/test-accounts.ts';

/** What a signature could not be made of: Canonical JSON has no fractions. */
const unsigned = /signature|context|fraction/;

/** The malformed copies of a call, signed as they are where they can be. */
function* malformedCalls(
  { scene: { channel }, by, params }: ReadyChannelCall,
  method: ChannelMethodName,
): Generator<readonly [string, JsonObject]> {
  const { signed, harmless } = recipes[method];
  for (const [what, broken] of malformed(params)) {
    if (harmless?.test(what)) continue;
    yield [what, signed && !unsigned.test(what) ? channel.sign(broken, by) : broken];
  }
}

const verbs: readonly HttpVerb[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Session, form, extension: what every method asks of its call. */
function callChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed } = recipes[method];
  const http = methods[method].http as readonly HttpVerb[];
  const transports = http.length === 0 ? (['wss'] as const) : (['https', 'wss'] as const);
  const inQuery = http.includes('GET');

  check(
    'session',
    {
      source: '06 §8, 02 §10',
      title: 'asks for a device session: unauthorized without, forbidden with the account key',
      transports,
    },
    async (stage) => {
      const { by, params } = await readyForChannel(stage, method);
      const nobody = await stage.visitor();
      await stage.fail(nobody, { method, params }, 'unauthorized');
      nobody.use('never-issued');
      await stage.fail(nobody, { method, params }, 'unauthorized');
      const keyHolder = await stage.keyHolder(by.account);
      await stage.fail(keyHolder, { method, params }, 'forbidden');
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'form',
    {
      source: '06 §4, §6, §8',
      title: 'refuses every malformed member with bad_request and keeps nothing of it',
      transports,
    },
    async (stage) => {
      const ready = await readyForChannel(stage, method);
      const { by, params } = ready;
      const calls =
        inQuery && stage.transport === 'https'
          ? malformedQueries(params)
          : malformedCalls(ready, method);
      const refused = { by, method, codes: ['bad_request'] } as const;
      await withoutTrace(ready.scene.channel, () => refusesAll(refused, calls));
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'extension',
    { source: '02 §2.4, §2.5', title: 'tolerates members it does not know', transports },
    async (stage) => {
      const { scene, by, params } = await readyForChannel(stage, method);
      const unknown = { future: { some: ['thing', { of: 1 }], $type: 'unknown' }, ünknöwn: '' };
      const flat = { future: 'thing', ünknöwn: '' };
      const extended = { ...params, ...(inQuery && stage.transport === 'https' ? flat : unknown) };
      const call = signed ? scene.channel.sign(extended, by) : extended;
      await stage.succeed(by.caller, method, call);
    },
  );

  if (http.length > 0) {
    check(
      'verb',
      { source: '02 §2.1, §14', title: 'has one HTTP verb', transports: ['https'] },
      async (stage) => {
        const { by, params } = await readyForChannel(stage, method);
        for (const verb of verbs.filter((other) => !http.includes(other))) {
          const answer = await by.caller.call(method, verb === 'GET' ? {} : params, verb);
          const code = answer.ok ? 'success' : answer.code;
          demand(code === 'method_not_found', `method_not_found of ${verb}, not ${code}`);
        }
        await stage.succeed(by.caller, method, params);
      },
    );
  }

  return list;
}

/** Signature, type and size: what holds of parameters that are a signed object. */
function objectChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, bytes } = recipes[method];
  if (!signed || bytes === undefined) return list;

  check(
    'signature',
    {
      source: '06 §8, §14',
      title: 'refuses a signature that is altered, or of any other device, as invalid_signature',
    },
    async (stage) => {
      const { scene, by, params } = await readyForChannel(stage, method, { devices: 2 });
      const { channel } = scene;
      const stranger = { device: await stage.account().device() };
      const elsewhere = signAsDevice(otherNetwork(stage.network), params, by.device.signer);
      const wrong: Readonly<Record<string, JsonObject>> = {
        'bit flipped': { ...params, device_signature: flipped(String(params.device_signature)) },
        'member added': { ...params, added: 1 },
        'member changed': { ...params, ...changed(params) },
        "the account's other device": channel.sign(params, at(by, 1)),
        'another account': channel.sign(params, stranger),
        'another network': elsewhere,
      };
      const refused = { by, method, codes: ['invalid_signature'] } as const;
      await withoutTrace(channel, () => refusesAll(refused, Object.entries(wrong)));
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'type',
    { source: '06 §8', title: 'refuses the type of any other object' },
    async (stage) => {
      const { scene, by, params } = await readyForChannel(stage, method);
      const types = ['channel.descriptor', 'channel.post', 'channel.post.edit', 'channel'];
      const wrong = [...types, 'channel.post.delete', 'message.envelope']
        .map((name) => stage.network.type(name))
        .concat('other.channel.post', String(params.$type).toUpperCase())
        .filter((type) => type !== params.$type)
        .map(($type) => [$type, scene.channel.sign({ ...params, $type }, by)] as const);
      await refusesAll({ by, method, codes: ['bad_request'] }, wrong);
      await stage.succeed(by.caller, method, params);
    },
  );

  check(
    'size',
    { source: '06 §4, §6', title: `takes ${bytes} bytes of Canonical JSON and not one more` },
    async (stage) => {
      const { scene, by, params } = await readyForChannel(stage, method);
      const { channel } = scene;
      const make = (filling: string) => channel.sign({ ...params, filling }, by);
      const large = { method, params: filledTo(bytes + 1, make) };
      await withoutTrace(channel, () => stage.fail(by.caller, large, 'request_too_large'));
      await stage.succeed(by.caller, method, filledTo(bytes, make));
    },
  );

  return list;
}

/** The same network but for its context, which no transmitted object says. */
function otherNetwork({ context, word, primitives }: Network): Network {
  const other = context.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  return new Network({ context: other, word, primitives });
}

/** A member of a signed object with another value that is as well-formed. */
function changed({ name, body, reason }: JsonObject): JsonObject {
  if (typeof name === 'string') return { name: `${name}!` };
  if (isJsonObject(body)) return { body: { ...body, text: `${body.text}!` } };
  return { reason: `${reason}!` };
}

const names = Object.keys(recipes) as ChannelMethodName[];

export const channelCommonChecks: readonly Check[] = names.flatMap((method) => [
  ...callChecks(method),
  ...objectChecks(method),
]);
