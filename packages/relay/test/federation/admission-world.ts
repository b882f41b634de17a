/** Admission of a relay on a real database and registry file, among other relays on loopback. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RelayEntry } from '@posthouse/protocol';
import type { RelayContext } from '../../src/context.ts';
import { type Admission, openAdmission } from '../../src/federation/admission.ts';
import { FileRegistry, KeptRegistry } from '../../src/federation/index.ts';
import type { EligiblePeer } from '../../src/federation/verify-descriptor.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import type { Storage, StorageFaults } from '../../src/storage/types.ts';
import { ManualClock } from '../support/clock.ts';
import { RelayData } from '../support/engine.ts';
import {
  defaultRelay,
  network,
  openModules,
  partsOfOneRelay,
  relayKeys,
} from '../support/modules.ts';
import { peerText, RemoteRelay, type TestCertificate, testCertificate } from './remote-relay.ts';

/** The byte of this relay's peer key. */
export const ownPeerByte = 200;

const never = new AbortController().signal;

let certificate: Promise<TestCertificate> | undefined;

export class AdmissionWorld implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly ownId = relayKeys(defaultRelay).relayId;
  readonly faults: StorageFaults = {};
  /** Every drop, in order. */
  readonly drops: { readonly peer: EligiblePeer; readonly reason: string }[] = [];
  readonly #limits: RelayLimits;
  readonly #allowPrivate: boolean;
  readonly #parts = new AsyncDisposableStack();
  #data: RelayData | undefined;
  #records: RelayEntry[] = [];
  #running: { context: RelayContext; storage: Storage; admission: Admission } | undefined;

  constructor(limits: Partial<RelayLimits>, allowPrivate: boolean) {
    this.#limits = { ...defaultLimits, federationAddressLookupBurst: 1, ...limits };
    this.#allowPrivate = allowPrivate;
  }

  static async start(
    limits: Partial<RelayLimits> = {},
    { allowPrivate = true }: { allowPrivate?: boolean } = {},
  ): Promise<AdmissionWorld> {
    const world = new AdmissionWorld(limits, allowPrivate);
    world.#data = world.#parts.use(await RelayData.withSchema());
    certificate ??= testCertificate();
    writeFileSync(join(world.#data.path, 'ca.pem'), (await certificate).authority);
    world.list({ ...world.ownEntry });
    await world.#open();
    return world;
  }

  get context(): RelayContext {
    return this.#part.context;
  }

  get eligibility() {
    return this.#part.admission.eligibility;
  }

  get ownEntry(): RelayEntry {
    return {
      relay_id: this.ownId,
      endpoint: 'https://own.example/svc/v1',
      status: 'active',
      updated_at: 1,
    };
  }

  /** Starts another relay; the registry does not list it yet. */
  async remote(byte: number): Promise<RemoteRelay> {
    certificate ??= testCertificate();
    return this.#parts.use(await RemoteRelay.start(byte, this.clock, await certificate));
  }

  /** Starts another relay that the registry lists as active. */
  async listed(byte: number): Promise<RemoteRelay> {
    const remote = await this.remote(byte);
    this.list(remote.entry());
    return remote;
  }

  /** Enters records into the registry file; a relay's earlier record is replaced. */
  list(...entries: RelayEntry[]): void {
    const changed = new Set(entries.map(({ relay_id }) => relay_id));
    const others = this.#records.filter(({ relay_id }) => !changed.has(relay_id));
    this.#records = [...others, ...entries];
    this.#write();
  }

  unlist(relayId: string): void {
    this.#records = this.#records.filter(({ relay_id }) => relay_id !== relayId);
    this.#write();
  }

  /** Makes the registry unreadable until the next {@link list}. */
  breakRegistry(): void {
    rmSync(this.#registryPath);
  }

  async admit(remote: RemoteRelay): Promise<EligiblePeer> {
    return await this.eligibility.admit(await remote.handshake(), {}, never);
  }

  /** Runs a job once, as the runner would; returns when it wants to run again. */
  async run(name: 'registry' | 'changes' | 'descriptors'): Promise<number | undefined> {
    const job = this.#part.admission.jobs.find((known) => known.name === `federation.${name}`);
    return await job?.run(this.context, never, () => ({ [Symbol.dispose]() {} }));
  }

  /** Stops and starts on the same database and registry file. */
  async restart(): Promise<void> {
    await this.#close();
    await this.#open();
  }

  async rows(sql: string): Promise<Record<string, unknown>[]> {
    return await this.#part.storage.read((tx) => tx.all(sql));
  }

  async block(relayId: string): Promise<void> {
    await this.#part.storage.write('relays', (tx) =>
      tx.run(
        "INSERT INTO blocks (kind, id, reason, created_at) VALUES ('relay', ?, ?, ?)",
        relayId,
        'spam',
        this.clock.now(),
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    await this.#parts.disposeAsync();
  }

  get #part() {
    if (this.#running === undefined) throw new Error('the relay is stopped');
    return this.#running;
  }

  get #registryPath(): string {
    return join((this.#data as RelayData).path, 'registry.json');
  }

  #write(): void {
    const file = { context: network.context, relays: this.#records };
    writeFileSync(this.#registryPath, JSON.stringify(file));
  }

  async #open(): Promise<void> {
    const data = this.#data as RelayData;
    const storage = await data.open(this.faults);
    const opened = openModules(
      {
        storage,
        clock: this.clock,
        limits: this.#limits,
        ...partsOfOneRelay(),
      },
      relayKeys(defaultRelay),
    );
    const identity = { ...opened.context.identity, peerId: peerText(ownPeerByte) };
    // The first byte of chance is zero: no jitter.
    const random = (length: number) => new Uint8Array(length);
    const context = { ...opened.context, identity, random };
    const registry = new KeptRegistry(new FileRegistry(network, this.#registryPath), context);
    const federation = {
      listen: '',
      ca: join(data.path, 'ca.pem'),
      allowPrivate: this.#allowPrivate,
      registryGrace: 21_600,
    };
    const tls = { mode: 'files', certificate: '', key: '', authority: '' } as const;
    const config = { federation, tls, dev: false, data: data.path };
    const admission = await openAdmission(context, { config, registry });
    admission.eligibility.onDrop((peer, reason) => this.drops.push({ peer, reason }));
    this.#running = { context, storage, admission };
  }

  async #close(): Promise<void> {
    await this.#running?.admission[Symbol.asyncDispose]();
    await this.#running?.storage[Symbol.asyncDispose]();
    this.#running = undefined;
  }
}
