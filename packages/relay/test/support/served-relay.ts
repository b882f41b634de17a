/** A whole relay with real sockets, TLS and database; the clock is the test's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  accountAuthInput,
  type Challenge,
  deviceAuthInput,
  type ErrorCode,
  encodeBase64url,
  type MethodName,
  ProtocolError,
  relayOrigin,
  type SessionCredentials,
} from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import { pino } from 'pino';
import { afterEach, beforeEach } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import type { Session } from '../../src/sessions/session.ts';
import type { StorageFaults } from '../../src/storage/types.ts';
import { type HomeRelay, Person, type TestDevice } from '../fixtures/person.ts';
import { ManualClock } from './clock.ts';
import { RelayData } from './engine.ts';
import { codeOf, type HttpAnswer, HttpClient } from './http.ts';
import { network } from './in-process-relay.ts';
import { freePort } from './ports.ts';
import { type RpcAnswer, WebSocketClient } from './websocket.ts';

/** Limits that no test meets by accident: the manual clock refills no bucket and jumps over deadlines. */
const generous = {
  accountRate: 1e9,
  accountBurst: 1e9,
  addressRate: 1e9,
  addressBurst: 1e9,
  pingInterval: 2_147_483_647,
  unboundTimeout: 2_147_483_647,
};

/** The folder and database of a relay; read at each start. */
export type ServedRelayData = Pick<RelayData, 'path' | 'config'> & AsyncDisposable;

/** A folder for a relay on SQLite, whatever engine the tests run on; it stays when the relay ends. */
export function sqliteIn(path: string): ServedRelayData {
  return {
    path,
    config: { data: path, storage: { engine: 'sqlite', url: '', connections: 2 } },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Which device of a person connects. */
interface ByDevice {
  readonly device?: string;
}

/**
 * @example
 * await using relay = await ServedRelay.start();
 * const ann = await relay.register('ann');
 * const { token } = await relay.logInDevice(ann);
 * const answer = await relay.http().call('profile.publish', ann.profile(), { token });
 */
export class ServedRelay implements HomeRelay, AsyncDisposable {
  clock = new ManualClock();
  faults: StorageFaults = {};
  /** Log of the next start. */
  log = pino({ level: process.env.POSTHOUSE_TEST_LOG ?? 'silent' });
  readonly people: Map<string, Person>;
  /** The process that {@link call} reaches; other processes of this relay may run too. */
  calledProcess: ServedRelay = this;
  readonly #config: PartialConfig;
  /** Of the process that this one was started next to. */
  readonly #first: ServedRelay | undefined;
  readonly #declared: { readonly person: Person; readonly devices: readonly string[] }[] = [];
  #data: ServedRelayData | undefined;
  #open = new DisposableStack();
  #relay: Relay | undefined;
  /** 0 until the first start chose one. */
  #port = 0;
  #peerPort = 0;

  constructor(config: PartialConfig = {}, first?: ServedRelay) {
    this.#config = config;
    this.#first = first;
    this.people = first?.people ?? new Map();
  }

  static async start(config: PartialConfig = {}, data?: ServedRelayData): Promise<ServedRelay> {
    const started = new ServedRelay(config);
    await started.start(data);
    return started;
  }

  /** Starts on an empty database, at the beginning of time, with the people declared. */
  async start(data?: ServedRelayData): Promise<void> {
    const first = this.#first;
    this.clock = first?.clock ?? new ManualClock();
    this.faults = {};
    this.calledProcess = this;
    this.#data = data ?? (first ? first.#data : await RelayData.withSchema());
    this.#open = new DisposableStack();
    this.#port = 0;
    this.#peerPort = 0;
    await this.#start();
    for (const { person, devices } of this.#declared) await person.register(devices);
  }

  /** Starts another process of this relay: the same data, time and public address. */
  async startProcess(config: PartialConfig = {}): Promise<ServedRelay> {
    const process = new ServedRelay({ ...this.#config, ...config }, this);
    await process.start();
    return process;
  }

  get server(): Relay {
    if (this.#relay === undefined) throw new Error('the relay is stopped');
    return this.#relay;
  }

  get relayId(): string {
    return this.server.relayId;
  }

  /** The port at which this process listens for clients itself. */
  get port(): number {
    return this.#port;
  }

  /** The data folder. */
  get data(): string {
    if (this.#data === undefined) throw new Error('the relay is stopped');
    return this.#data.path;
  }

  /** Authority that signed the relay's certificate, PEM. */
  get ca(): string {
    const { authority = join(this.data, 'tls') } = this.#config.tls ?? {};
    return readFileSync(join(authority, 'ca.pem'), 'utf8');
  }

  /** A client of the base address with this number. */
  http(index = 0): HttpClient {
    return this.#open.use(new HttpClient(this.#past(this.server.https[index] as string), this.ca));
  }

  async socket(index = 0): Promise<WebSocketClient> {
    const address = this.#past(this.server.wss[index] as string);
    return this.#open.use(await WebSocketClient.open(address, this.ca));
  }

  /** Stops and starts on the same data and port. */
  async restart(): Promise<void> {
    await this.stop();
    await this.resume();
  }

  /** Starts after {@link stop}, on the same data and port. */
  async resume(): Promise<void> {
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#relay?.[Symbol.asyncDispose]();
    this.#relay = undefined;
  }

  /** Declares a person that is registered at each start, before the test. */
  person(name: string, devices: readonly string[] = ['phone']): Person {
    const person = new Person(this, name);
    this.#declared.push({ person, devices });
    return person;
  }

  /** Makes a person with an account here, set up over HTTP, and one device for each name. */
  async register(name: string, devices?: readonly string[]): Promise<Person> {
    return await Person.register(this, name, devices);
  }

  /** Logs in as the account or device of the session, and calls over HTTP. */
  async call(
    method: string,
    params: unknown,
    { session }: { readonly session?: Session | undefined } = {},
  ): Promise<JsonValue> {
    const process = this.calledProcess;
    const by = session && { token: await process.#tokenFor(session) };
    const answer = await process.http().call(method as MethodName, params, by);
    const code = codeOf(answer);
    if (code !== 'ok') throw new ProtocolError(code as ErrorCode, `${method}: ${answer.text}`);
    return (answer.text === '' ? null : JSON.parse(answer.text)) as JsonValue;
  }

  async #tokenFor(session: Session): Promise<string> {
    const person = this.people.get(session.account);
    if (person === undefined) throw new Error('the keys of the account are unknown');
    if (session.mode === 'account') return (await this.logInAccount(person)).token;
    const { deviceId } = session;
    const [name] = [...person.devices].find(([, device]) => device.deviceId === deviceId) ?? [];
    return (await this.logInDevice(person, name)).token;
  }

  /** Opens a connection of a person's device that subscribes these groups. */
  async withGroups(
    person: Person,
    groups: readonly { readonly groupId: string }[],
    by: ByDevice = {},
  ): Promise<WebSocketClient> {
    const group_ids = groups.map(({ groupId }) => groupId);
    return await this.#connected(person, by, (socket) =>
      socket.call('group.subscribe', { group_ids }),
    );
  }

  /** Opens a connection of a person's device that subscribes these channels. */
  async withChannels(
    person: Person,
    channels: readonly { readonly channelId: string }[],
    by: ByDevice = {},
  ): Promise<WebSocketClient> {
    const channel_ids = channels.map(({ channelId }) => channelId);
    return await this.#connected(person, by, (socket) =>
      socket.call('channel.subscribe', { channel_ids }),
    );
  }

  async #connected(
    person: Person,
    { device = 'phone' }: ByDevice,
    subscribe: (socket: WebSocketClient) => Promise<RpcAnswer>,
  ): Promise<WebSocketClient> {
    const socket = await this.socket();
    const bound = await this.bindDevice(socket, person.device(device));
    if (bound.error !== undefined) throw new Error(bound.error.message);
    const answer = await subscribe(socket);
    if (answer.error !== undefined) throw new Error(answer.error.message);
    return socket;
  }

  async challenge(account: string, client = this.http()): Promise<Challenge> {
    const answer = await client.call('auth.challenge', { account });
    return JSON.parse(answer.text) as Challenge;
  }

  /** Parameters of `auth.device.verify`, right unless a test says otherwise. */
  deviceProof(
    device: TestDevice,
    nonce: string,
    wrong: { origin?: string; timestamp?: number; relayId?: string } = {},
  ): Record<string, unknown> {
    const timestamp = wrong.timestamp ?? this.clock.now();
    const input = deviceAuthInput(network, {
      relay_id: wrong.relayId ?? this.relayId,
      origin: wrong.origin ?? relayOrigin(this.server.https[0] as string),
      account: device.certificate.account,
      device_id: device.deviceId,
      nonce,
      timestamp,
    });
    return {
      nonce,
      timestamp,
      signer_certificate: device.certificate,
      device_signature: encodeBase64url(device.signer.sign(input)),
    };
  }

  /** Parameters of `auth.account.verify`. */
  async accountProof(
    person: Person,
    nonce: string,
    wrong: { origin?: string } = {},
  ): Promise<Record<string, unknown>> {
    const { account, publicKey } = person.signer;
    const input = accountAuthInput(network, {
      relay_id: this.relayId,
      origin: wrong.origin ?? relayOrigin(this.server.https[0] as string),
      account,
      account_public_key: publicKey,
      nonce,
    });
    const signature = await person.signer.sign(input);
    return {
      nonce,
      account_public_key: publicKey,
      account_signature: encodeBase64url(signature),
    };
  }

  async logInDevice(person: Person, device = 'phone'): Promise<SessionCredentials> {
    const { nonce } = await this.challenge(person.account);
    const proof = this.deviceProof(person.device(device), nonce);
    return credentials(await this.http().call('auth.device.verify', proof));
  }

  async logInAccount(person: Person): Promise<SessionCredentials> {
    const { nonce } = await this.challenge(person.account);
    const proof = await this.accountProof(person, nonce);
    return credentials(await this.http().call('auth.account.verify', proof));
  }

  /** Authenticates a connection as a device; also what a renewal does. */
  async bindDevice(socket: WebSocketClient, device: TestDevice): Promise<RpcAnswer> {
    const { account } = device.certificate;
    const { result } = await socket.call('auth.challenge', { account });
    const { nonce } = result as Challenge;
    return socket.call('auth.device.verify', this.deviceProof(device, nonce));
  }

  async bindAccount(socket: WebSocketClient, person: Person): Promise<RpcAnswer> {
    const { result } = await socket.call('auth.challenge', { account: person.account });
    const { nonce } = result as Challenge;
    return socket.call('auth.account.verify', await this.accountProof(person, nonce));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#open[Symbol.dispose]();
    await this.stop();
    if (this.#first === undefined) await this.#data?.[Symbol.asyncDispose]();
    this.#data = undefined;
  }

  /** The address at which this process listens itself, instead of its public address. */
  #past(address: string): string {
    return address.replace(/(:\/\/[^/]*):\d+/, `$1:${this.#port}`);
  }

  async #start(): Promise<void> {
    const { limits, federation, ...config } = this.#config;
    // A public address of its own does not tell which port is listened on.
    if (this.#port === 0 && config.public !== undefined) this.#port = await freePort();
    const values: PartialConfig = {
      network: network.context,
      dev: true,
      // Otherwise a messenger that was built for something else would be served, and its rules hold.
      web: false,
      ...this.#data?.config,
      listen: `127.0.0.1:${this.#port}`,
      ...config,
      federation: { listen: `127.0.0.1:${this.#peerPort}`, ...federation },
      limits: { ...generous, ...limits },
    };
    const { clock, faults } = this;
    this.#relay = await Relay.start(values, { clock, faults, log: this.log });
    this.#peerPort = this.#relay.peerPort ?? 0;
    if (this.#port === 0) this.#port = Number(new URL(this.#relay.https[0] as string).port);
  }
}

function credentials(answer: HttpAnswer): SessionCredentials {
  if (codeOf(answer) !== 'ok') throw new Error(answer.text);
  return JSON.parse(answer.text) as SessionCredentials;
}

/**
 * Starts a relay before each test of the file and stops it afterwards.
 * @example
 * const relay = servedRelay({ host: { groups: true } });
 * const ann = relay.person('ann');
 */
export function servedRelay(config: PartialConfig = {}): ServedRelay {
  const relay = new ServedRelay(config);
  beforeEach(() => relay.start());
  afterEach(() => relay[Symbol.asyncDispose]());
  return relay;
}
