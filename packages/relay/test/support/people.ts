/** People with keys, and what they sign. */
import { createHash } from 'node:crypto';
import {
  type AccountDeviceState,
  type AccountProfile,
  type AccountRoute,
  type AccountSigner,
  type Authorization,
  accountSigner,
  type ContactGrant,
  type ContactInvite,
  type DeviceCertificate,
  type DeviceSigner,
  deviceSigner,
  type MessageEnvelope,
  type MessageKeyBox,
  type SigningDevice,
  sealMessage,
  signDeviceCertificate,
  signDeviceState,
  signGrant,
  signInvite,
  signingDevice,
  signProfile,
  signRouteDraft,
} from '@posthouse/protocol';
import type { Notice } from '../../src/dispatch/notice.ts';
import type { AccountSession, DeviceSession } from '../../src/sessions/session.ts';
import { network } from './modules.ts';
import type { World } from './world.ts';

const year = 31_536_000;

/** What a person needs of the relay they live at: its clock, its name, a way to call it. */
export type Ground = Pick<World, 'clock' | 'relayId' | 'call'>;

/** A device with its keys and its newest certificate. */
export interface TestDevice {
  readonly signer: DeviceSigner;
  readonly signing: SigningDevice;
  readonly encryptionKey: Uint8Array;
  readonly deviceId: string;
  certificate: DeviceCertificate;
}

const bytes = (seed: string) => new Uint8Array(createHash('sha256').update(seed).digest());

/** A person: an account key, devices, and the revisions used so far. */
export class Person {
  readonly account: string;
  readonly signer: AccountSigner;
  readonly #name: string;
  readonly #world: Ground;
  #revision = 1_000;

  constructor(world: Ground, name: string) {
    this.#world = world;
    this.#name = name;
    this.signer = accountSigner(network, bytes(`account ${name}`));
    this.account = this.signer.account;
  }

  /** A person at home at this relay, with one device for each name given. */
  static async atHome(world: Ground, name: string, devices = ['phone']): Promise<Person> {
    const person = new Person(world, name);
    for (const device of devices) await person.addDevice(device);
    await person.moveIn();
    return person;
  }

  readonly devices = new Map<string, TestDevice>();

  device(name = 'phone'): TestDevice {
    const device = this.devices.get(name);
    if (device === undefined) throw new Error(`${this.#name} has no ${name}`);
    return device;
  }

  /** Makes keys and a certificate; the account learns of it with the next state. */
  async addDevice(
    name: string,
    period: { notBefore?: number; expiresAt?: number } = {},
  ): Promise<TestDevice> {
    const encryptionKey = bytes(`encryption ${this.#name} ${name}`);
    const signingSeed = bytes(`signing ${this.#name} ${name}`);
    const signer = deviceSigner(network, { signingSeed, encryptionKey });
    const signing = signingDevice(network, this.account, signer);
    const now = this.#world.clock.now();
    const certificate = await signDeviceCertificate(network, {
      account: this.signer,
      device: signer,
      notBefore: period.notBefore ?? now - 60,
      expiresAt: period.expiresAt ?? now + year,
    });
    const device = { signer, signing, encryptionKey, deviceId: signing.deviceId, certificate };
    this.devices.set(name, device);
    return device;
  }

  /** IDs of these devices, of all where none is named; in order. */
  deviceIds(...names: string[]): string[] {
    const wanted = names.length > 0 ? names : [...this.devices.keys()];
    return wanted.map((name) => this.device(name).deviceId).sort();
  }

  /** What a commit tells of the account's timeline. */
  timelineNotice(head: number): Notice {
    return { kind: 'timeline', account: this.account, head, deviceIds: this.deviceIds() };
  }

  nextRevision(): number {
    this.#revision += 1;
    return this.#revision;
  }

  /** A device session; what authentication makes of keys is tested elsewhere. */
  session(device = 'phone'): DeviceSession {
    const { deviceId } = this.device(device);
    return {
      id: `session of ${deviceId}`,
      mode: 'device',
      account: this.account,
      deviceId,
      expiresAt: Number.MAX_SAFE_INTEGER,
    };
  }

  accountSession(): AccountSession {
    const { account } = this;
    return {
      id: `session of ${account}`,
      mode: 'account',
      account,
      expiresAt: Number.MAX_SAFE_INTEGER,
    };
  }

  /** A state with the certificates of all devices, or of those named. */
  async state(
    options: { revision?: number; devices?: readonly string[] } = {},
  ): Promise<AccountDeviceState> {
    const names = options.devices ?? [...this.devices.keys()];
    return await signDeviceState(network, this.signer, {
      revision: options.revision ?? this.nextRevision(),
      certificates: names.map((name) => this.device(name).certificate),
    });
  }

  async route(facts: Partial<AccountRoute> = {}): Promise<AccountRoute> {
    const now = this.#world.clock.now();
    return await signRouteDraft(network, this.signer, {
      revision: this.nextRevision(),
      relay_id: this.#world.relayId,
      updated_at: now,
      expires_at: now + year,
      ...facts,
    });
  }

  async publishState(state?: AccountDeviceState): Promise<void> {
    const params = state ?? (await this.state());
    await this.#world.call('device.state.publish', params, { session: this.accountSession() });
  }

  async publishRoute(route?: AccountRoute): Promise<void> {
    const params = route ?? (await this.route());
    await this.#world.call('account.route.publish', params, { session: this.accountSession() });
  }

  /** Stages a state and publishes the route that puts it into force. */
  async moveIn(): Promise<void> {
    await this.publishState();
    await this.publishRoute();
  }

  profile(facts: Partial<AccountProfile> = {}, device = 'phone'): AccountProfile {
    return signProfile(network, this.device(device).signer, {
      account: this.account,
      public_discovery: true,
      updated_at: this.#world.clock.now(),
      ...facts,
    });
  }

  async publishProfile(facts: Partial<AccountProfile> = {}): Promise<void> {
    await this.#world.call('profile.publish', this.profile(facts), { session: this.session() });
  }

  grant(to: Person, facts: { expires_at?: number } = {}, device = 'phone'): ContactGrant {
    return signGrant(network, this.device(device).signing, { grantee: to.account, ...facts });
  }

  invite(expiresAt = this.#world.clock.now() + year, device = 'phone'): ContactInvite {
    return signInvite(network, this.device(device).signing, { expires_at: expiresAt });
  }

  /** Parameters of a `message.send` to somebody's devices. */
  message(to: Person, options: MessageOptions = {}): SendParams {
    const { device = 'phone', boxes = [...to.devices.keys()], senders = [] } = options;
    const sealed = sealMessage(network, {
      from: this.device(device).signing,
      to: to.account,
      createdAt: options.createdAt ?? this.#world.clock.now(),
      ...(options.messageId === undefined ? {} : { messageId: options.messageId }),
      content: {
        $type: network.type('message.direct'),
        body: { content_type: 'text/plain', text: options.text ?? 'hi' },
      },
      recipients: boxes.map((name) => to.device(name).certificate),
      senders: senders.map((name) => this.device(name).certificate),
      random: (length) => crypto.getRandomValues(new Uint8Array(length)),
    });
    const { authorization } = options;
    return { ...sealed, ...(authorization === undefined ? {} : { authorization }) };
  }
}

export interface SendParams {
  readonly envelope: MessageEnvelope;
  readonly recipient_boxes: MessageKeyBox[];
  readonly sender_boxes?: MessageKeyBox[];
  readonly authorization?: Authorization;
}

export interface MessageOptions {
  readonly device?: string;
  /** Names of the recipient's devices that get a box. */
  readonly boxes?: readonly string[];
  /** Names of own devices that get a box. */
  readonly senders?: readonly string[];
  readonly createdAt?: number;
  readonly messageId?: string;
  readonly text?: string;
  readonly authorization?: Authorization;
}
