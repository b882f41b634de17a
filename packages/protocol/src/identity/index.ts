export { checkAccountId, deriveAccountId } from './account-id.ts';
export {
  accountAuthInput,
  Challenge,
  checkChallenge,
  checkRelayInfo,
  checkSessionCredentials,
  deviceAuthInput,
  RelayInfo,
  SessionCredentials,
  SessionMode,
} from './auth.ts';
export {
  type CertificateOptions,
  checkAccountKey,
  checkDeviceCertificate,
  DeviceCertificate,
  deviceCertificateAccountInput,
  deviceCertificateDeviceInput,
  deviceCertificateSignatures,
  isCertificateCurrent,
  signDeviceCertificate,
  verifyDeviceCertificate,
} from './certificate.ts';
export {
  checkDescriptor,
  checkDescriptorStatus,
  type DescriptorFields,
  descriptorAddresses,
  descriptorPeerId,
  descriptorSignatures,
  descriptorSigningInput,
  hasCapability,
  RelayDescriptor,
  signDescriptor,
  verifyDescriptor,
} from './descriptor.ts';
export { deriveDeviceId } from './device-id.ts';
export {
  boundSignatures,
  deviceSignatures,
  deviceSignedTexts,
  deviceSigningInput,
  signAsDevice,
} from './device-signed.ts';
export {
  AccountDeviceState,
  checkDeviceState,
  currentDevices,
  deviceStateSignatures,
  deviceStateSigningInput,
  devicesOf,
  nextRevision,
  signDeviceState,
  verifyDeviceState,
} from './device-state.ts';
export {
  checkHttpsEndpoint,
  checkWssEndpoint,
  classifyEndpoint,
  type Endpoint,
  type Libp2pAddress,
} from './endpoint.ts';
export { type BoundTexts, Network, type NetworkOptions, sha256Text } from './network.ts';
export { relayOrigin } from './origin.ts';
export { ed25519KeyOfPeer, parsePeerId, peerIdOf } from './peer-id.ts';
export {
  AccountProfile,
  checkProfile,
  type ProfileFields,
  profileSignatures,
  profileSigningInput,
  signProfile,
  verifyProfile,
} from './profile.ts';
export {
  activeRelays,
  checkRelayEntry,
  type Registry,
  RelayEntry,
  StaticRegistryFile,
  staticRegistry,
} from './registry.ts';
export { staticRegistryInSteps } from './registry-steps.ts';
export { deriveRelayId } from './relay-id.ts';
export {
  AccountRoute,
  checkRoute,
  checkRouteDraft,
  cosignRoute,
  type FinalRoute,
  type RouteFields,
  routeAccountInput,
  routeContent,
  routeDraftSignatures,
  routeRelayInput,
  routeSignatures,
  signRouteDraft,
  verifyRoute,
} from './route.ts';
export {
  type AccountSigner,
  accountSigner,
  type DeviceSigner,
  deviceSigner,
  type SigningDevice,
  signingDevice,
} from './signers.ts';
export {
  checkWalletKey,
  type Nep6Wallet,
  openNep6Wallet,
  WalletError,
  type WalletFault,
  type WalletKey,
} from './wallet.ts';
export { type SealedWallet, sealNep6Wallet } from './wallet-writer.ts';
