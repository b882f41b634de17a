/**
 * What needs cryptography in the page. Bundled apart: as a part of the page's bundle, it would be shared
 * with the page, and loaded at the start.
 */
import {
  type DeviceApproval,
  type DeviceRequest,
  parseDeviceApproval,
  parseDeviceRequest,
} from '@posthouse/client';
import { accountSigner, deriveDeviceId } from '@posthouse/protocol';
import type { AppConfig } from '../app-config.ts';
import { networkOf } from '../state/backup.ts';

export { isPasskeyDocument, removePasskey } from '@posthouse/client/web/passkey';
export {
  isBackupOf,
  openBackup,
  openKeyByPasskey,
  passkeyForBackup,
  sealBackup,
} from '../state/backup.ts';

/** A request, and the ID that a person compares. */
export interface ReadRequest {
  readonly request: DeviceRequest;
  readonly deviceId: string;
}

/** @throws ClientError `verification_failed` for what is no request of this network */
export async function readRequest(config: AppConfig, text: string): Promise<ReadRequest> {
  const network = networkOf(config);
  const request = await parseDeviceRequest(network, text);
  return { request, deviceId: deviceIdOf(config, request) };
}

/** The ID of the device that made a request. */
export function deviceIdOf(config: AppConfig, { certificate }: DeviceRequest): string {
  return deriveDeviceId(networkOf(config), certificate);
}

/** @throws ClientError `verification_failed` for what is no approval of this network */
export async function readApproval(config: AppConfig, text: string): Promise<DeviceApproval> {
  return await parseDeviceApproval(networkOf(config), text);
}

/** The account ID of a private key. */
export function accountOfKey(config: AppConfig, key: Uint8Array): string {
  return accountSigner(networkOf(config), key).account;
}

export * from './lock-store.ts';
