import {
  type AccountDeviceState,
  type AccountProfile,
  type AccountSigner,
  cosignRoute,
  type FinalRoute,
  type Network,
  signProfile,
} from '@posthouse/protocol';
import { deriveRouteKey } from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { Account, type Device, unixSeconds } from '../fixtures/account.ts';

/** An account at home at a relay of the kit. A check may replace its objects. */
export class HomeAccount {
  readonly account: Account;
  readonly devices: Device[];
  state: AccountDeviceState;
  profile: AccountProfile;
  route: FinalRoute;

  private constructor(parts: {
    readonly account: Account;
    readonly devices: Device[];
    readonly state: AccountDeviceState;
    readonly profile: AccountProfile;
    readonly route: FinalRoute;
  }) {
    this.account = parts.account;
    this.devices = parts.devices;
    this.state = parts.state;
    this.profile = parts.profile;
    this.route = parts.route;
  }

  /** Makes an account with one device and a public profile; by default with new keys. */
  static async create(
    network: Network,
    relay: RelaySigner,
    account = new Account(network),
  ): Promise<HomeAccount> {
    const devices = [await account.device()];
    const profile = publicProfile(devices[0] as Device);
    const state = await account.state(devices);
    const route = await routeTo(account, relay);
    return new HomeAccount({ account, devices, state, profile, route });
  }

  get id(): string {
    return this.account.id;
  }

  get device(): Device {
    return this.devices[0] as Device;
  }
}

/** The keys of a relay that co-signs routes. */
export interface RelaySigner {
  readonly relayId: string;
  readonly signer: AccountSigner;
}

/** Signs the final route of an account to a relay of the kit. */
export async function routeTo(
  account: Account,
  { relayId, signer }: RelaySigner,
  fields: Partial<Parameters<Account['route']>[0]> = {},
): Promise<FinalRoute> {
  return await cosignRoute(account.network, signer, await account.route({ relayId, ...fields }));
}

/** Signs a profile that lets everyone find the account. */
export function publicProfile(device: Device, fields: JsonObject = {}): AccountProfile {
  return signProfile(device.account.network, device.signer, {
    account: device.account.id,
    public_discovery: true,
    updated_at: unixSeconds(),
    ...fields,
  });
}

/** Returns a route as the record of the DHT. */
export function recordOf(network: Network, route: JsonObject & { readonly account: string }) {
  const key = deriveRouteKey(network, route.account);
  return { key, value: Buffer.from(canonicalJson(route)) };
}
