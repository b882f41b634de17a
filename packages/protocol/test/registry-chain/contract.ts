/**
 * The registry contract as a state machine (07 §A3 to §A5), with the native GAS contract that it pulls
 * its fee from. What a node executes, and the oracle of what readers must see.
 */

/** One signer of an invocation, as JSON-RPC has it. */
export interface Signer {
  readonly account: string;
  readonly scopes: string;
  readonly allowedcontracts?: readonly string[];
}

export interface ContractRecord {
  readonly relayId: string;
  /** The contract stores any bytes that begin with https://. */
  readonly endpoint: Uint8Array;
  readonly status: 'active' | 'disabled' | 'suspended';
  readonly updatedAt: number;
}

/** The execution ends in FAULT: nothing of it stays. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

export const gas = '0xd2a4cff31913016155e38e474a2c06d08be276cf';

const https = new TextEncoder().encode('https://');

export type Argument = string | boolean | number | Uint8Array | null;

export interface Call {
  readonly method: string;
  readonly args: readonly Argument[];
  readonly signers?: readonly Signer[];
}

export class RegistryContract {
  readonly hash: string;
  readonly owner: string;
  fee = 10_000_000_000;
  /** Milliseconds of the next block. */
  now = 1_750_000_000_000;
  records = new Map<string, ContractRecord>();
  /** GAS of accounts, in 10^-8. */
  balances = new Map<string, number>();
  events: string[] = [];

  constructor(hash: string, owner = `0x${'0f'.repeat(20)}`) {
    this.hash = hash;
    this.owner = owner;
  }

  /** Executes a call in a block of its own. @throws Fault */
  execute(call: Call): unknown {
    const { records, balances, events, fee } = this;
    this.records = new Map(records);
    this.balances = new Map(balances);
    this.events = [...events];
    try {
      const result = this.#run(call);
      this.now += 15_000;
      return result;
    } catch (error) {
      Object.assign(this, { records, balances, events, fee });
      throw error;
    }
  }

  /** Executes a call and takes everything back, as a node does for `invokefunction`. */
  simulate(call: Call): unknown {
    const { records, balances, events, now, fee } = this;
    try {
      return this.execute(call);
    } finally {
      Object.assign(this, { records, balances, events, now, fee });
    }
  }

  #run({ method, args, signers = [] }: Call): unknown {
    const [first, second] = args;
    const isWitness = (account: string, contract = this.hash) =>
      signers.some((signer) => signer.account === account && covers(signer, contract, this.hash));
    switch (method) {
      case 'getRelay':
        return this.records.get(idOf(first)) ?? null;
      case 'listRelays':
        return [...this.records.values()];
      case 'getRelayRegistrationFee':
        return this.fee;
      case 'registerRelay':
        return this.#register(idOf(first), endpointOf(second), isWitness);
      case 'updateRelayEndpoint':
        return this.#update(idOf(first), endpointOf(second), isWitness);
      case 'setRelayEnabled': {
        if (typeof second !== 'boolean') throw new Fault('not a Boolean');
        return this.#enable(idOf(first), second, isWitness);
      }
      case 'suspendRelay':
        return this.#govern(idOf(first), 'suspended', isWitness);
      case 'restoreRelay':
        return this.#govern(idOf(first), 'disabled', isWitness);
      case 'setRelayRegistrationFee': {
        if (typeof first !== 'number' || first < 0) throw new Fault('negative');
        if (!isWitness(this.owner)) return false;
        this.fee = first;
        return true;
      }
      default:
        throw new Fault(`method not found: ${method}`);
    }
  }

  #register(relayId: string, endpoint: Uint8Array, isWitness: Witness): boolean {
    if (!isWitness(relayId) || this.records.has(relayId)) return false;
    if (this.fee > 0) {
      const balance = this.balances.get(relayId) ?? 0;
      // The transfer is a call of GAS by the registry: a signer's scope must cover GAS too.
      if (!isWitness(relayId, gas) || balance < this.fee) throw new Fault('payment failed');
      this.balances.set(relayId, balance - this.fee);
    }
    this.#put({ relayId, endpoint, status: 'active', updatedAt: this.now }, 'RelayRegistered');
    return true;
  }

  #update(relayId: string, endpoint: Uint8Array, isWitness: Witness): boolean {
    const record = this.records.get(relayId);
    if (!isWitness(relayId) || record === undefined) return false;
    if (Buffer.compare(record.endpoint, endpoint) === 0) return true;
    this.#put({ ...record, endpoint, updatedAt: this.now }, 'RelayEndpointChanged');
    return true;
  }

  #enable(relayId: string, enabled: boolean, isWitness: Witness): boolean {
    const record = this.records.get(relayId);
    if (!isWitness(relayId) || record === undefined || record.status === 'suspended') return false;
    const status = enabled ? 'active' : 'disabled';
    if (record.status !== status) {
      this.#put({ ...record, status, updatedAt: this.now }, 'RelayStatusChanged');
    }
    return true;
  }

  #govern(relayId: string, status: 'suspended' | 'disabled', isWitness: Witness): boolean {
    const record = this.records.get(relayId);
    if (!isWitness(this.owner) || record === undefined) return false;
    if (status === 'disabled' && record.status !== 'suspended') return false;
    if (record.status !== status) {
      this.#put({ ...record, status, updatedAt: this.now }, 'RelayStatusChanged');
    }
    return true;
  }

  #put(record: ContractRecord, event: string): void {
    this.records.set(record.relayId, record);
    this.events.push(event);
  }
}

type Witness = (account: string, contract?: string) => boolean;

/** Whether a signer's scope covers a contract; `CalledByEntry` covers what the entry script calls. */
function covers(signer: Signer, contract: string, called: string): boolean {
  switch (signer.scopes) {
    case 'Global':
      return true;
    case 'CalledByEntry':
      return contract === called;
    case 'CustomContracts':
      return signer.allowedcontracts?.includes(contract) === true;
    default:
      return false;
  }
}

function idOf(value: Argument | undefined): string {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{40}$/.test(value)) throw new Fault('no relay ID');
  return value;
}

function endpointOf(value: Argument | undefined): Uint8Array {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  if (!(bytes instanceof Uint8Array) || bytes.length > 512) throw new Fault('endpoint');
  if (Buffer.compare(bytes.subarray(0, https.length), https) !== 0) throw new Fault('endpoint');
  return bytes;
}
