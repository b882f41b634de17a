/** Everything one check plays with: callers, accounts, and short ways to a usual situation. */
import {
  type AccountProfile,
  accountAuthInput,
  checkSessionCredentials,
  type DeviceCertificate,
  descriptorAddresses,
  deviceAuthInput,
  type ErrorCode,
  encodeBase64url,
  type JsonObject,
  type JsonValue,
  type ProfileFacts,
  type RelayDescriptor,
  relayOrigin,
  type SessionCredentials,
  signProfile,
  verifyDescriptor,
} from '@posthouse/protocol';
import { Account, type Device, unixSeconds } from './actors.ts';
import { type Answer, type Caller, HttpsCaller, type TransportName, WssCaller } from './caller.ts';
import { demand } from './demand.ts';
import { PlainHttp } from './plain/http.ts';
import type { Target } from './target.ts';

/** An account that is at home on the relay under test, with a caller for each device. */
export interface Resident {
  readonly account: Account;
  readonly devices: readonly Device[];
  /** Device sessions, in the order of `devices`. */
  readonly callers: readonly Caller[];
  /** The first device and its caller. */
  readonly device: Device;
  readonly caller: Caller;
}

export interface ResidentOptions {
  /** Number of devices, 1 by default. */
  readonly devices?: number;
  /** Publishes a profile with this setting; no profile when absent. */
  readonly publicDiscovery?: boolean;
}

export class Stage implements AsyncDisposable {
  readonly target: Target;
  readonly transport: TransportName;
  /** The relay's complete WebSocket address, where its descriptor lists one. */
  readonly wssUrl: string | undefined;
  /** The relay's verified descriptor. */
  readonly descriptor: RelayDescriptor;
  readonly #callers = new DisposableStack();
  /** Connections that the callers over HTTPS share: a session is a header, not a connection. */
  readonly #http: PlainHttp;

  private constructor(facts: {
    readonly target: Target;
    readonly transport: TransportName;
    readonly descriptor: RelayDescriptor;
    readonly http: PlainHttp;
  }) {
    const { descriptor, http } = facts;
    this.target = facts.target;
    this.transport = facts.transport;
    this.descriptor = descriptor;
    this.#http = this.#callers.use(http);
    this.wssUrl = descriptorAddresses(descriptor).wss[0];
  }

  /** Reads the relay's descriptor and verifies it (01 §13.4), then sets the stage. */
  static async open(target: Target, transport: TransportName): Promise<Stage> {
    using stack = new DisposableStack();
    const http = stack.use(new PlainHttp(target.baseUrl, target.ca));
    const answer = await new HttpsCaller(target, http).call('relay.descriptor');
    demand(answer.ok, 'relay.descriptor answers');
    const descriptor: unknown = answer.result;
    verifyDescriptor(target.network, descriptor, { entry: target.entry, now: unixSeconds() });
    stack.move();
    return new Stage({ target, transport, descriptor, http });
  }

  get network() {
    return this.target.network;
  }

  get relayId(): string {
    return this.target.entry.relay_id;
  }

  /** Origin of the address this stage's callers talk to (02 §8). */
  get origin(): string {
    return relayOrigin(this.transport === 'wss' ? (this.wssUrl as string) : this.target.baseUrl);
  }

  /** The transport this stage is not about: what holds across both needs a caller there too. */
  get otherTransport(): TransportName {
    return this.transport === 'wss' ? 'https' : 'wss';
  }

  /** A caller without a session, on this stage's transport or the one named. */
  async visitor(transport: TransportName = this.transport): Promise<Caller> {
    return transport === 'https' ? this.https() : this.wss();
  }

  https(): HttpsCaller {
    return this.#callers.use(new HttpsCaller(this.target, this.#http));
  }

  async wss(): Promise<WssCaller> {
    demand(this.wssUrl !== undefined, 'the relay lists a WSS address');
    return this.#callers.use(await WssCaller.open(this.target, this.wssUrl));
  }

  account(): Account {
    return new Account(this.network);
  }

  /** Calls and demands success. */
  async succeed(caller: Caller, method: string, params?: JsonObject): Promise<JsonValue> {
    const answer = await caller.call(method, params);
    demand(answer.ok, `${method} succeeds, not ${answer.ok ? '' : answer.code}`);
    return answer.result;
  }

  /** Calls and demands one of the failures given. */
  async fail(
    caller: Caller,
    call: { readonly method: string; readonly params?: JsonObject },
    ...codes: readonly ErrorCode[]
  ): Promise<Answer & { ok: false }> {
    const answer = await caller.call(call.method, call.params);
    demand(!answer.ok, `${call.method} is refused with ${codes.join(' or ')}`);
    const found = `${call.method} is refused with ${codes.join(' or ')}, not ${answer.code}`;
    demand(codes.includes(answer.code), found);
    return answer;
  }

  /** A fresh nonce for an account. */
  async challenge(caller: Caller, account: string): Promise<string> {
    const challenge = (await this.succeed(caller, 'auth.challenge', { account })) as JsonObject;
    return String(challenge.nonce);
  }

  /** The parameters that prove a device, with anything replaced. */
  deviceProof(
    device: Device,
    nonce: string,
    changes: { timestamp?: number; certificate?: DeviceCertificate; relayId?: string } = {},
  ): JsonObject {
    const timestamp = changes.timestamp ?? unixSeconds();
    const certificate = changes.certificate ?? device.certificate;
    const input = deviceAuthInput(this.network, {
      relay_id: changes.relayId ?? this.relayId,
      origin: this.origin,
      account: device.account.id,
      device_id: device.id,
      nonce,
      timestamp,
    });
    return {
      nonce,
      timestamp,
      signer_certificate: certificate,
      device_signature: encodeBase64url(device.signer.sign(input)),
    };
  }

  /** The parameters that prove an account key. */
  async accountProof(account: Account, nonce: string): Promise<JsonObject> {
    const input = accountAuthInput(this.network, {
      relay_id: this.relayId,
      origin: this.origin,
      account: account.id,
      account_public_key: account.signer.publicKey,
      nonce,
    });
    return {
      nonce,
      account_public_key: account.signer.publicKey,
      account_signature: encodeBase64url(await account.signer.sign(input)),
    };
  }

  /** Opens a device session on a caller. */
  async enterDevice(caller: Caller, device: Device): Promise<SessionCredentials> {
    const nonce = await this.challenge(caller, device.account.id);
    return this.#enter(caller, 'auth.device.verify', this.deviceProof(device, nonce));
  }

  /** Opens an account session on a caller. */
  async enterAccount(caller: Caller, account: Account): Promise<SessionCredentials> {
    const nonce = await this.challenge(caller, account.id);
    return this.#enter(caller, 'auth.account.verify', await this.accountProof(account, nonce));
  }

  async #enter(caller: Caller, method: string, proof: JsonObject): Promise<SessionCredentials> {
    const credentials: unknown = await this.succeed(caller, method, proof);
    const mode = method === 'auth.device.verify' ? 'device' : 'account';
    checkSessionCredentials(credentials, mode);
    caller.use(credentials.token);
    return credentials;
  }

  /** A caller with an account session. */
  async keyHolder(account: Account, transport = this.transport): Promise<Caller> {
    const caller = await this.visitor(transport);
    await this.enterAccount(caller, account);
    return caller;
  }

  /** A caller with a device session. */
  async member(device: Device, transport = this.transport): Promise<Caller> {
    const caller = await this.visitor(transport);
    await this.enterDevice(caller, device);
    return caller;
  }

  /** Sets an account up here: state pre-stored, route published (01 §17.2). */
  async settle(account: Account, devices: readonly Device[]): Promise<void> {
    const keyHolder = await this.keyHolder(account, 'https');
    await this.succeed(keyHolder, 'device.state.publish', await account.state(devices));
    const route = await account.route({ relayId: this.relayId });
    await this.succeed(keyHolder, 'account.route.publish', route);
  }

  /** A profile signed by a device, dated now unless said otherwise. */
  profile(device: Device, facts: Partial<ProfileFacts> = {}): AccountProfile {
    return signProfile(this.network, device.signer, {
      account: device.account.id,
      public_discovery: false,
      updated_at: unixSeconds(),
      ...facts,
    });
  }

  /** An account at home here, with device sessions on this stage's transport. */
  async resident(options: ResidentOptions = {}): Promise<Resident> {
    const account = this.account();
    const devices: Device[] = [];
    for (let count = 0; count < (options.devices ?? 1); count += 1) {
      devices.push(await account.device());
    }
    await this.settle(account, devices);
    const callers: Caller[] = [];
    for (const device of devices) callers.push(await this.member(device));
    const [device, caller] = [devices[0] as Device, callers[0] as Caller];
    if (options.publicDiscovery !== undefined) {
      const profile = this.profile(device, { public_discovery: options.publicDiscovery });
      await this.succeed(caller, 'profile.publish', profile);
    }
    return { account, devices, callers, device, caller };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#callers.dispose();
  }
}
