/** A whole relay behind its front door: real sockets, TLS and database; the clock is the test's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  accountAuthInput,
  type Challenge,
  deviceAuthInput,
  encodeBase64url,
  relayOrigin,
  type SessionCredentials,
} from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import { pino } from 'pino';
import type { PartialConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import type { StorageFaults } from '../../src/storage/types.ts';
import { type HomeRelay, Person, type TestDevice } from '../fixtures/person.ts';
import { ManualClock } from './clock.ts';
import { RelayData } from './engine.ts';
import { codeOf, type HttpAnswer, HttpClient } from './http.ts';
import { network } from './in-process-relay.ts';
import { freePort } from './ports.ts';
import { type RpcAnswer, WebSocketClient } from './websocket.ts';

/** Limits that no test meets by accident; the manual clock refills no bucket and sends no pong. */
const generous = {
  accountRate: 1e9,
  accountBurst: 1e9,
  addressRate: 1e9,
  addressBurst: 1e9,
  pingInterval: 2_147_483_647,
};

/** Where a relay has its folder and its database; asked for at each start. */
export type ServedRelayData = Pick<RelayData, 'path' | 'config'> & AsyncDisposable;

export class ServedRelay implements AsyncDisposable {
  readonly clock: ManualClock;
  readonly faults: StorageFaults = {};
  readonly #data: ServedRelayData;
  readonly #ownsData: boolean;
  readonly #config: PartialConfig;
  readonly #open = new DisposableStack();
  #relay: Relay | undefined;
  /** 0 until the first start chose one. */
  #port = 0;

  private constructor(data: ServedRelayData, config: PartialConfig, first?: ServedRelay) {
    this.#data = data;
    this.#ownsData = first === undefined;
    this.#config = config;
    this.clock = first?.clock ?? new ManualClock();
  }

  static async start(config: PartialConfig = {}, data?: ServedRelayData): Promise<ServedRelay> {
    const door = new ServedRelay(data ?? (await RelayData.withSchema()), config);
    await door.#start();
    return door;
  }

  /** Another process of this relay: the same data and time, and with `public` the same address. */
  async beside(config: PartialConfig = {}): Promise<ServedRelay> {
    const door = new ServedRelay(this.#data, { ...this.#config, ...config }, this);
    await door.#start();
    return door;
  }

  get relay(): Relay {
    if (this.#relay === undefined) throw new Error('the relay is stopped');
    return this.#relay;
  }

  get relayId(): string {
    return this.relay.relayId;
  }

  get data(): string {
    return this.#data.path;
  }

  /** Authority that signed the relay's certificate, PEM. */
  get ca(): string {
    return readFileSync(join(this.data, 'tls', 'ca.pem'), 'utf8');
  }

  /** A client of the base address with this number. */
  http(index = 0): HttpClient {
    return this.#open.use(new HttpClient(this.#past(this.relay.https[index] as string), this.ca));
  }

  async socket(index = 0): Promise<WebSocketClient> {
    const address = this.#past(this.relay.wss[index] as string);
    return this.#open.use(await WebSocketClient.open(address, this.ca));
  }

  /** Stops and starts on the same data and port. */
  async restart(): Promise<void> {
    await this.stop();
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#relay?.[Symbol.asyncDispose]();
    this.#relay = undefined;
  }

  /** A person at home here, set up as a client would over HTTP. */
  async person(name: string, devices = ['phone']): Promise<Person> {
    const person = this.newcomer(name);
    for (const device of devices) await person.addDevice(device);
    await person.moveIn();
    return person;
  }

  /** A person this relay has not heard of. */
  newcomer(name: string): Person {
    const ground: HomeRelay = {
      clock: this.clock,
      relayId: this.relayId,
      call: async (method, params) => {
        const { token } = await this.logInAccount(person);
        const answer = await this.http().call(method as 'device.state.publish', params, { token });
        if (codeOf(answer) !== 'ok') throw new Error(`${method}: ${answer.text}`);
        return (answer.text === '' ? null : JSON.parse(answer.text)) as JsonValue;
      },
    };
    const person = new Person(ground, name);
    return person;
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
      origin: wrong.origin ?? relayOrigin(this.relay.https[0] as string),
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
      origin: wrong.origin ?? relayOrigin(this.relay.https[0] as string),
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
    await this.#relay?.[Symbol.asyncDispose]();
    if (this.#ownsData) await this.#data[Symbol.asyncDispose]();
  }

  /** Where this process listens itself, past whatever is at its public address. */
  #past(address: string): string {
    return address.replace(/(:\/\/[^/]*):\d+/, `$1:${this.#port}`);
  }

  async #start(): Promise<void> {
    const { limits, ...config } = this.#config;
    // A public address of its own does not tell which port is listened on.
    if (this.#port === 0 && config.public !== undefined) this.#port = await freePort();
    const values: PartialConfig = {
      network: network.context,
      dev: true,
      ...this.#data.config,
      listen: `127.0.0.1:${this.#port}`,
      ...config,
      limits: { ...generous, ...limits },
    };
    const { clock, faults } = this;
    const log = pino({ level: process.env.POSTHOUSE_TEST_LOG ?? 'silent' });
    this.#relay = await Relay.start(values, { clock, faults, log });
    if (this.#port === 0) this.#port = Number(new URL(this.#relay.https[0] as string).port);
  }
}

function credentials(answer: HttpAnswer): SessionCredentials {
  if (codeOf(answer) !== 'ok') throw new Error(answer.text);
  return JSON.parse(answer.text) as SessionCredentials;
}
