/** Two relays with people, groups and channels, sessions of every kind, and valid calls of every method. */
import {
  encodeBase64url,
  type MethodName,
  methods,
  type SessionCredentials,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import type { Session } from '../../src/sessions/session.ts';
import { attachment, TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { type HomeRelay, Person } from '../fixtures/person.ts';
import type { HttpClient } from '../support/http.ts';
import { ServedNetwork } from '../support/served-network.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** A call that the relay accepted, or would accept from the person who makes it. */
export interface ValidCall {
  readonly method: MethodName;
  readonly params: JsonObject;
  /** Who calls; absent if the method needs no session. */
  readonly person: Person | undefined;
}

/** One caller: a token for HTTP and a connection in the same state. */
export interface Caller {
  readonly kind: string;
  /** Whose keys sign what the caller changes; absent without a session. */
  readonly person: Person | undefined;
  readonly device: string;
  readonly token: string | undefined;
  readonly socket: WebSocketClient;
}

/** No rate or byte allowance: the clock of the relays stands still and refills none. */
const allowances = {
  ...{ addressBytes: 1e12, addressBytesBurst: 1e12, accountBytes: 1e12, accountBytesBurst: 1e12 },
  ...{ relayQueryRate: 1e9, relayQueryBurst: 1e9, routeLookupRate: 1e9, routeLookupBurst: 1e9 },
  ...{ relayQueryNewAccounts: 1e9, relayRate: 1e9, relayBurst: 1e9 },
  ...{ relayAccountRate: 1e9, relayAccountBurst: 1e9, dhtRate: 1e9, dhtBurst: 1e9 },
  ...{
    dhtPutRate: 1e9,
    dhtPutBurst: 1e9,
    dhtSendRate: 1e9,
    dhtSendBurst: 1e9,
    dhtNewAccounts: 1e9,
  },
  ...{ challenges: 1e9, challengesPerAddress: 1e9, challengesOfAccount: 1e9 },
  ...{ accountDailyBytes: 1e15, groupDailyBytes: 1e15, channelDailyBytes: 1e15 },
  ...{ accountStoredBytes: 1e15, accountReceivedDailyBytes: 1e15 },
  ...{ groupStoredBytes: 1e15, channelStoredBytes: 1e15 },
  ...{ foreignRelayDailyBytes: 1e15, foreignDailyBytes: 1e15 },
  ...{ dhtAskRate: 1e9, dhtAskBurst: 1e9, groupsOfAccount: 1e9, channelsOfAccount: 1e9 },
  ...{ unfinishedMessageTimeout: 2_147_483_647, requestTimeout: 1_000_000_000 },
};

/** Passes calls on to a relay and remembers those it accepts. */
class Recorder implements HomeRelay {
  readonly calls: ValidCall[] = [];
  readonly #relay: ServedRelay;

  constructor(relay: ServedRelay) {
    this.#relay = relay;
  }

  get clock() {
    return this.#relay.clock;
  }

  get relayId() {
    return this.#relay.relayId;
  }

  get people() {
    return this.#relay.people;
  }

  async call(
    method: string,
    params: unknown,
    options: { readonly session?: Session | undefined } = {},
  ): Promise<JsonValue> {
    const result = await this.#relay.call(method, params, options);
    this.remember(method, params, options.session);
    return result;
  }

  /** Remembers how people log in. */
  async rememberLogIns(person: Person): Promise<void> {
    const { account } = person;
    const relay = this.#relay;
    const first = await relay.challenge(account);
    this.remember('auth.device.verify', relay.deviceProof(person.device(), first.nonce));
    const second = await relay.challenge(account);
    this.remember('auth.account.verify', await relay.accountProof(person, second.nonce));
  }

  remember(method: string, params: unknown, session?: Session): void {
    const person = session && this.people.get(session.account);
    const copy = JSON.parse(JSON.stringify(params)) as JsonObject;
    this.calls.push({ method: method as MethodName, params: copy, person });
  }
}

interface People {
  /** Owner of the group and the channel; has a phone and a laptop. */
  readonly ann: Person;
  /** Administrator of the group. */
  readonly ben: Person;
  /** Member of the group. */
  readonly cem: Person;
  /** Stranger to both; its tablet was removed. */
  readonly dan: Person;
  /** Member of the group whose home is another relay. */
  readonly eve: Person;
  /** Has no account anywhere. */
  readonly fay: Person;
}

async function register(here: HomeRelay, elsewhere: HomeRelay): Promise<People> {
  return {
    ann: await Person.register(here, 'ann', ['phone', 'laptop']),
    ben: await Person.register(here, 'ben'),
    cem: await Person.register(here, 'cem'),
    dan: await Person.register(here, 'dan', ['phone', 'tablet']),
    eve: await Person.register(elsewhere, 'eve'),
    fay: new Person(here, 'fay'),
  };
}

/** Calls every method of the catalogue. */
async function tellStory(relay: Recorder, people: People): Promise<void> {
  const { ann, ben, cem, dan, eve, fay } = people;
  for (const person of [eve, fay]) relay.people.set(person.account, person);
  await fay.addDevice('phone');
  await tellOfAccounts(relay, people);
  const group = await tellOfGroup(relay, people);
  const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  const channel_id = channel.channelId;
  await channel.update({ description: 'what is new' });
  const post = await channel.post({ body: text('Version 1.0') }, { by: ben });
  await channel.edit(post, { body: text('Version 1.1') });
  await channel.delete(await channel.post({ attachments: [attachment()] }));
  const report = { channel_id, target_sequence: post, reason: 'spam' };
  await relay.call('channel.post.report', report, { session: cem.session() });
  await channel.read({ limit: 10 });
  await channel.resolve(1, { by: dan });
  await (await TestChannel.create(relay, ann)).close();
  relay.remember('channel.subscribe', { channel_ids: [channel_id] }, dan.session());
  relay.remember('group.subscribe', { group_ids: [group.groupId] }, cem.session());
  const missing = Object.keys(methods).filter(
    (name) => !relay.calls.some(({ method }) => method === name),
  );
  if (missing.length > 0) throw new Error(`never called: ${missing.join(', ')}`);
}

async function tellOfAccounts(relay: Recorder, { ann, ben, cem, dan, eve }: People) {
  const { account } = ann;
  await relay.call('relay.info', {});
  await relay.call('relay.descriptor', {});
  await relay.call('account.route.resolve', { account });
  await relay.call('account.route.resolve', { account: eve.account });
  for (const person of [ann, ben, cem]) await person.publishProfile({ nickname: 'a friend' });
  const by = { session: ben.session() };
  await relay.call('profile.resolve', { account }, by);
  await relay.call('device.state.resolve', { account }, by);
  const grant = ann.grant(ben);
  relay.remember('device.state.resolve', ben.stateQuery(account, grant), ben.session());
  const message = ben.message(ann, { authorization: grant, senders: ['phone'] });
  const { message_id } = message.envelope;
  await relay.call('message.send', message, by);
  await relay.call('message.delivery.status', { message_id }, by);
  await relay.call('message.send', cem.message(ann, { authorization: ann.invite() }), {
    session: cem.session(),
  });
  await relay.call('message.timeline.sync', { after: 0, limit: 10 }, { session: ann.session() });
  await relay.call('auth.challenge', { account });
  await relay.rememberLogIns(ann);
  await dan.publishState(await dan.state({ devices: ['phone', 'tablet'] }));
}

async function tellOfGroup(relay: Recorder, people: People): Promise<TestGroup> {
  const { ann, ben, cem, dan, eve } = people;
  const group = await TestGroup.create(relay, ann);
  const group_id = group.groupId;
  const call = (method: string, params: object, by = ann) =>
    relay.call(method, { group_id, ...params }, { session: by.session() });
  await group.update({ name: 'the club' });
  await group.admit(ben, cem, dan);
  const { invite_id } = await group.invite({ max_uses: 3 });
  await call('group.resolve', { invite_id }, eve);
  await call('group.invite.resolve', { invite_id });
  await call('group.invite.list', { limit: 5 });
  await group.apply(eve, { invite_id });
  await call('group.application.list', { limit: 5 });
  await call('group.application.reject', { accounts: [eve.account] });
  await call('group.invite.revoke', { invite_id });
  await group.admit(eve);
  await group.setRole(ben, 'administrator');
  await group.requestRecovery(cem);
  await call('group.member.recovery.list', { limit: 5 });
  await call('group.member.recovery.reject', { accounts: [cem.account] });
  await group.requestRecovery(cem);
  await group.recover([cem]);
  await group.rotate();
  await call('group.key.sync', { after: 0, limit: 5 });
  await call('group.sync', { after: 0, limit: 50 }, ben);
  await group.ban([dan]);
  await group.unban([dan]);
  const page = { after: 0, limit: 500 };
  const { events } = (await call('group.sync', page)) as unknown as {
    readonly events: readonly { readonly epoch?: number }[];
  };
  await group.send(cem, Math.max(...events.map(({ epoch = 0 }) => epoch)));
  const other = await TestGroup.create(relay, ann);
  await other.admit(ben, cem);
  await other.leave(cem);
  await other.transfer(ben);
  await other.remove([ann], { by: ben });
  await other.close();
  return group;
}

const callerKinds = [
  { kind: 'none' },
  { kind: 'wrong token', token: encodeBase64url(nodeRandom(32)) },
  { kind: 'device', name: 'ann' },
  { kind: 'other device', name: 'ann', device: 'laptop' },
  { kind: 'account', name: 'ann', mode: 'account' },
  { kind: 'administrator', name: 'ben' },
  { kind: 'member', name: 'cem' },
  { kind: 'stranger', name: 'dan' },
  { kind: 'account of a stranger', name: 'dan', mode: 'account' },
  { kind: 'away', name: 'eve' },
  { kind: 'account away', name: 'eve', mode: 'account' },
  { kind: 'account nowhere', name: 'fay', mode: 'account' },
  { kind: 'removed device', name: 'dan', device: 'tablet' },
  { kind: 'expired', name: 'ben', isExpired: true },
] as const satisfies readonly {
  readonly kind: string;
  readonly name?: keyof People;
  readonly device?: string;
  readonly mode?: 'account';
  readonly token?: string;
  readonly isExpired?: true;
}[];
/** Logs in or binds a caller of each kind, over both transports. */
async function logIn(
  relay: ServedRelay,
  people: People,
  expired: SessionCredentials,
): Promise<Caller[]> {
  const callers: Caller[] = [];
  for (const kind of callerKinds) {
    const socket = await relay.socket();
    const person = 'name' in kind ? people[kind.name] : undefined;
    const device = 'device' in kind ? kind.device : 'phone';
    const caller = { kind: kind.kind, person, device, socket };
    if (person === undefined || 'isExpired' in kind) {
      const token =
        person === undefined ? ('token' in kind ? kind.token : undefined) : expired.token;
      callers.push({ ...caller, token });
    } else if ('mode' in kind) {
      await relay.bindAccount(socket, person);
      callers.push({ ...caller, token: (await relay.logInAccount(person)).token });
    } else {
      await relay.bindDevice(socket, person.device(device));
      callers.push({ ...caller, token: (await relay.logInDevice(person, device)).token });
    }
  }
  const { dan } = people;
  await dan.publishState(await dan.state({ devices: ['phone'] }));
  return callers;
}

export class World implements AsyncDisposable {
  readonly relay: ServedRelay;
  readonly calls: readonly ValidCall[];
  readonly callers: readonly Caller[];
  readonly http: HttpClient;
  readonly #network: ServedNetwork;

  private constructor(network: ServedNetwork, parts: Pick<World, 'calls' | 'callers'>) {
    [this.relay] = network.pair;
    this.http = this.relay.http();
    this.#network = network;
    this.calls = parts.calls;
    this.callers = parts.callers;
  }

  static async create(): Promise<World> {
    const network = await ServedNetwork.start(2, {
      host: { groups: true, channels: true },
      limits: allowances,
    });
    const [here, elsewhere] = network.pair;
    const recorder = new Recorder(here);
    const people = await register(recorder, elsewhere);
    const expired = await here.logInDevice(people.ben);
    for (const { clock } of network.relays) clock.advance(86_400);
    await tellStory(recorder, people);
    const callers = await logIn(here, people, expired);
    return new World(network, { calls: recorder.calls, callers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { socket } of this.callers) socket[Symbol.dispose]();
    await this.#network[Symbol.asyncDispose]();
  }
}
