/** The relay under test asks a home relay for its clients (07 §C3, §C4, §C6, §C7, §C9). */
import {
  type ErrorCode,
  encodeBase64url,
  type ProfileFields,
  profileSigningInput,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { inviteOf } from '../../fixtures/contacts.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { publicProfile, routeTo } from '../../seat/home-account.ts';
import { type Answering, type ReplyToCall, refusal } from '../../seat/relay-service.ts';
import { deviceStateQuery } from '../device-query.ts';
import { relayChecksOf } from './common.ts';
import { openSource, type SourceFixture } from './source-fixture.ts';

const profiles = relayChecksOf('source.profile.resolve');
const states = relayChecksOf('source.device.state.resolve');

profiles.check(
  'forwards',
  { source: '07 §C7', title: 'asks the home relay and returns its answer unchanged' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    const profile = publicProfile(home.device, { future: { deep: ['kept'] } });
    home.profile = profile;
    const result = await context.expectOk(asker.caller, 'profile.resolve', { account: home.id });
    const expected = { profile, signer_certificate: home.device.certificate };
    assertEqual(result, expected, 'the answer of the home relay');
    const calls = seat.service.calls('profile.resolve');
    assertEqual(calls.length, 1, 'requests to the home relay');
    assertEqual(calls[0]?.params, { account: home.id }, 'parameters of the request');
  },
);

type FaultyAnswer = (
  fixture: SourceFixture,
  honest: JsonObject,
) => ReplyToCall | Promise<ReplyToCall>;

const isResult = (reply: ReplyToCall): reply is { result: JsonValue } =>
  typeof reply === 'object' && 'result' in reply;

/** Makes the seat give an answer made of the honest one. */
function lie(fixture: SourceFixture, method: string, answer: FaultyAnswer): void {
  const { service } = fixture.seat;
  const answering: Answering = async (call) => {
    const honest = service.honest(call);
    return await answer(fixture, isResult(honest) ? (honest.result as JsonObject) : {});
  };
  service.answer(method, answering);
}

/** Answers that are none, to any method, and the codes that the client may get. */
const invalidAnswers: Readonly<Record<string, readonly [FaultyAnswer, ...ErrorCode[]]>> = {
  'another-id': [
    (_fixture, result) => ({ frame: JSON.stringify({ jsonrpc: '2.0', id: 'other', result }) }),
    'bad_gateway',
  ],
  'no-json': [() => ({ frame: '{"jsonrpc":"2.0","result":' }), 'bad_gateway'],
  'no-utf8': [() => ({ frame: new Uint8Array([0x22, 0xff, 0x22]) }), 'bad_gateway'],
  'null-as-result': [() => ({ result: null }), 'bad_gateway'],
  'an-empty-result': [() => ({ result: {} }), 'bad_gateway'],
  'a-null-member': [(_fixture, result) => ({ result: { ...result, note: null } }), 'bad_gateway'],
  'result-and-error': [
    (_fixture, result) => ({ error: { code: -32_010, message: 'not found' }, result }),
    'bad_gateway',
  ],
  'an-unknown-code': [() => ({ error: { code: -32_999, message: 'new' } }), 'bad_gateway'],
  'a-negative-wait': [() => refusal('rate_limited', { retry_after: -1 }), 'bad_gateway'],
  'a-wait-as-text': [() => refusal('rate_limited', { retry_after: '1' }), 'bad_gateway'],
  'a-reset': [() => 'reset', 'temporarily_unavailable'],
  'no-answer': [() => 'ended', 'temporarily_unavailable', 'bad_gateway'],
  'target-not-local': [
    () => refusal('target_not_local'),
    'temporarily_unavailable',
    'target_not_local',
  ],
  'route-stale': [() => refusal('route_stale'), 'temporarily_unavailable', 'route_stale'],
};

for (const [word, [answer, ...codes]] of Object.entries(invalidAnswers)) {
  profiles.check(
    `answer-${word}`,
    {
      source: '07 §C3, §C4, §C9',
      title: `an answer with ${word} is ${codes.join(' or ')} for the client`,
    },
    async (context) => {
      const fixture = await openSource(context);
      lie(fixture, 'profile.resolve', answer);
      const call = { method: 'profile.resolve', params: { account: fixture.home.id } };
      await context.expectError(fixture.asker.caller, call, ...codes);
    },
  );
}

/** Signs a profile with any members. */
function signedProfile({ home }: SourceFixture, members: JsonObject): JsonObject {
  const { device_signature: _, ...fields } = home.profile;
  const unsigned = { ...fields, ...members } as unknown as ProfileFields & { $type: string };
  const input = profileSigningInput(home.account.network, unsigned);
  return { ...unsigned, device_signature: encodeBase64url(home.device.signer.sign(input)) };
}

/** Profiles that must not reach a client. */
const profileLies: Readonly<Record<string, FaultyAnswer>> = {
  'altered-profile': (_fixture, result) => ({
    result: { ...result, profile: { ...(result.profile as JsonObject), public_discovery: false } },
  }),
  'altered-signature': ({ home }, result) => ({
    result: {
      ...result,
      profile: { ...home.profile, device_signature: tampered(home.profile.device_signature) },
    },
  }),
  'another-account': async ({ seat }) => {
    const other = await seat.home();
    const profile = other.profile;
    return { result: { profile, signer_certificate: other.device.certificate } };
  },
  'another-device': async ({ home }, result) => {
    const { certificate } = await home.account.device();
    return { result: { ...result, signer_certificate: certificate } };
  },
  'altered-certificate': ({ home }, result) => {
    const { certificate } = home.device;
    const account_signature = tampered(certificate.account_signature);
    return { result: { ...result, signer_certificate: { ...certificate, account_signature } } };
  },
  'another-type': (fixture, result) => ({
    result: { ...result, profile: signedProfile(fixture, { $type: 'svc.other' }) },
  }),
};

for (const [word, answer] of Object.entries(profileLies)) {
  profiles.check(
    `refuses-${word}`,
    { source: '07 §C1, §C7', title: `an answer with ${word} is bad_gateway for the client` },
    async (context) => {
      const fixture = await openSource(context);
      lie(fixture, 'profile.resolve', answer);
      const call = { method: 'profile.resolve', params: { account: fixture.home.id } };
      await context.expectError(fixture.asker.caller, call, 'bad_gateway');
    },
  );
}

profiles.check(
  'not-found',
  { source: '07 §C7', title: 'passes the refusal of the home relay on' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    seat.service.answer('profile.resolve', () => refusal('not_found'));
    const call = { method: 'profile.resolve', params: { account: home.id } };
    await context.expectError(asker.caller, call, 'not_found');
  },
);

profiles.check(
  'rate-limited',
  { source: '07 §C9', title: 'passes retry_after of the home relay on, also as Retry-After' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    seat.service.answer('profile.resolve', () => refusal('rate_limited', { retry_after: 7 }));
    const caller = context.https();
    const { token } = await context.authenticateDevice(caller, asker.device);
    // The reader of the answer compares Retry-After with the member.
    const answer = await caller.raw('profile.resolve', {
      verb: 'GET',
      path: `${caller.path('profile.resolve')}?account=${home.id}`,
      headers: { [context.network.sessionHeader]: token },
    });
    assertConforms(!answer.ok, 'a refusal of the home relay is one for the client');
    assertEqual(answer.code, 'rate_limited', 'code of the refusal');
    assertEqual((answer.data as JsonObject | undefined)?.retry_after, 7, 'the wait');
  },
);

/** What a client may get while the known home relay says that it is another one. */
const whileMoving: ReadonlySet<ErrorCode> = new Set(['temporarily_unavailable', 'route_stale']);

profiles.check(
  'moved',
  { source: '07 §C4', title: 'asks another relay after a route error, if a higher route names it' },
  async (context) => {
    const fixture = await openSource(context);
    const { seat, home, asker } = fixture;
    const other = await context.seat();
    await other.connect();
    seat.service.answer('profile.resolve', () => refusal('route_stale'));
    const revision = home.route.revision + 1;
    home.route = await routeTo(home.account, other, { revision });
    other.service.homes.push(home);
    // A relay may refresh the route for this call, or for the next one.
    const answer = async () => {
      const found = await asker.caller.call('profile.resolve', { account: home.id });
      if (found.ok) return found.result as JsonObject;
      assertConforms(whileMoving.has(found.code), `a call of meanwhile is not ${found.code}`);
      return undefined;
    };
    const { profile } = await pollUntil('the new home relay is asked', answer, { seconds: 10 });
    assertEqual(profile, home.profile, 'the answer of the new home relay');
  },
);

profiles.check(
  'not-moved-back',
  { source: '07 §C4', title: 'asks no other relay that only a lower route names' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    const other = await context.seat();
    await other.connect();
    seat.service.answer('profile.resolve', () => refusal('route_stale'));
    const old = await other.home();
    const { account, devices, state, profile } = home;
    const revision = home.route.revision - 1;
    const route = await routeTo(account, other, { revision });
    Object.assign(old, { account, devices, state, profile, route });
    const call = { method: 'profile.resolve', params: { account: home.id } };
    await context.expectError(asker.caller, call, ...whileMoving);
    assertEqual(other.service.calls('profile.resolve').length, 0, 'requests to the other relay');
  },
);

states.check(
  'unchanged',
  { source: '07 §C6', title: 'passes a signed query on unchanged, and the answer back' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    const query = deviceStateQuery(asker.device, home.id, inviteOf(home.device));
    const state = await context.expectOk(asker.caller, 'device.state.resolve', query);
    assertEqual(state, home.state, 'the answer of the home relay');
    const [call] = seat.service.calls('device.state.resolve');
    assertEqual(canonicalJson(call?.params ?? {}), canonicalJson(query), 'the query as passed on');
  },
);

states.check(
  'own-checks',
  { source: '07 §C6', title: 'refuses a query of another device without asking' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    const other = await context.testAccount();
    const query = deviceStateQuery(other.device, home.id, inviteOf(home.device));
    const call = { method: 'device.state.resolve', params: query };
    await context.expectError(asker.caller, call, 'forbidden');
    assertEqual(seat.service.calls('device.state.resolve').length, 0, 'requests that were sent');
  },
);

states.check(
  'own-signature',
  { source: '07 §C6', title: 'refuses a query with an invalid signature without asking' },
  async (context) => {
    const { seat, home, asker } = await openSource(context);
    const query = deviceStateQuery(asker.device, home.id, inviteOf(home.device));
    const params = { ...query, device_signature: tampered(String(query.device_signature)) };
    const call = { method: 'device.state.resolve', params };
    await context.expectError(asker.caller, call, 'invalid_signature');
    assertEqual(seat.service.calls('device.state.resolve').length, 0, 'requests that were sent');
  },
);

states.check(
  'refuses-without-the-inviter',
  { source: '07 §C6', title: 'a state without the device that signed the invite is bad_gateway' },
  async (context) => {
    const { home, asker } = await openSource(context);
    const query = deviceStateQuery(asker.device, home.id, inviteOf(home.device));
    const others = [await home.account.device()];
    home.state = await home.account.state(others, home.state.revision + 1);
    const call = { method: 'device.state.resolve', params: query };
    await context.expectError(asker.caller, call, 'bad_gateway');
  },
);

/** States that must not reach a client. */
const stateLies: Readonly<Record<string, FaultyAnswer>> = {
  'altered-state': (_fixture, result) => ({
    result: { ...result, revision: Number(result.revision) + 1 },
  }),
  'altered-signature': ({ home }) => ({
    result: { ...home.state, account_signature: tampered(home.state.account_signature) },
  }),
  'another-account': async ({ seat }) => ({ result: (await seat.home()).state }),
  'altered-certificate': ({ home }) => {
    const { certificate } = home.device;
    const device_signature = tampered(certificate.device_signature);
    return { result: { ...home.state, certificates: [{ ...certificate, device_signature }] } };
  },
  'lower-revision': async ({ home }) => ({
    result: await home.account.state(home.devices, home.state.revision - 1),
  }),
  'another-content-of-the-revision': async ({ home }) => ({
    result: await home.account.state([], home.state.revision),
  }),
};

for (const [word, answer] of Object.entries(stateLies)) {
  states.check(
    `refuses-${word}`,
    { source: '07 §C6', title: `an answer with ${word} is bad_gateway for the client` },
    async (context) => {
      const fixture = await openSource(context);
      const params = { account: fixture.home.id };
      await context.expectOk(fixture.asker.caller, 'device.state.resolve', params);
      lie(fixture, 'device.state.resolve', answer);
      const call = { method: 'device.state.resolve', params };
      await context.expectError(fixture.asker.caller, call, 'bad_gateway');
    },
  );
}

states.check(
  'higher-revision',
  { source: '07 §C6', title: 'adopts a state of a higher revision' },
  async (context) => {
    const { home, asker } = await openSource(context);
    const params = { account: home.id };
    await context.expectOk(asker.caller, 'device.state.resolve', params);
    home.devices.push(await home.account.device());
    home.state = await home.account.state(home.devices, home.state.revision + 1);
    const state = await context.expectOk(asker.caller, 'device.state.resolve', params);
    assertEqual(state, home.state, 'the higher state');
  },
);

export const sourceQueryChecks = [...profiles.list, ...states.list];
