/** The parts of WebAuthn that this folder uses; `../platform.ts` says why these are types of our own. */

/** Bytes as a browser gives them, or a password manager that takes the browser's place. */
export type Bytes = ArrayBuffer | ArrayBufferView;

interface PrfInput {
  readonly first: Uint8Array;
}

interface CredentialName {
  readonly type: 'public-key';
  readonly id: Uint8Array;
}

interface CreationOptions {
  readonly challenge: Uint8Array;
  readonly rp: { readonly id: string; readonly name: string };
  readonly user: { readonly id: Uint8Array; readonly name: string; readonly displayName: string };
  readonly pubKeyCredParams: readonly { readonly type: 'public-key'; readonly alg: number }[];
  readonly excludeCredentials: readonly CredentialName[];
  readonly authenticatorSelection: {
    readonly residentKey: 'required';
    readonly userVerification: 'required';
  };
  readonly attestation: 'none';
  readonly extensions: { readonly prf: { readonly eval: PrfInput } };
}

interface RequestOptions {
  readonly challenge: Uint8Array;
  readonly rpId: string;
  readonly allowCredentials: readonly CredentialName[];
  readonly userVerification: 'required';
  readonly extensions: {
    readonly prf: { readonly evalByCredential: Readonly<Record<string, PrfInput>> };
  };
}

interface PrfOutput {
  /** After a creation: whether the authenticator has the extension. */
  readonly enabled?: boolean;
  readonly results?: { readonly first?: Bytes };
}

interface Credential<Response> {
  readonly rawId: ArrayBuffer;
  readonly response: Response;
  getClientExtensionResults(): { readonly prf?: PrfOutput };
}

type CreatedCredential = Credential<{
  readonly clientDataJSON: ArrayBuffer;
  getAuthenticatorData(): ArrayBuffer;
}>;

type Assertion = Credential<{
  readonly clientDataJSON: ArrayBuffer;
  readonly authenticatorData: ArrayBuffer;
}>;

export interface CredentialsContainer {
  create(options: {
    readonly publicKey: CreationOptions;
    readonly signal?: AbortSignal;
  }): Promise<CreatedCredential | null>;
  get(options: {
    readonly publicKey: RequestOptions;
    readonly signal?: AbortSignal;
  }): Promise<Assertion | null>;
}

interface PublicKeyCredentialClass {
  getClientCapabilities?(): Promise<Readonly<Record<string, boolean>>>;
  isUserVerifyingPlatformAuthenticatorAvailable?(): Promise<boolean>;
  signalUnknownCredential?(options: {
    readonly rpId: string;
    readonly credentialId: string;
  }): Promise<void>;
}

/** What the folder uses of the global object of a page; a worker and Node lack most of it. */
interface PasskeyPlatform {
  readonly isSecureContext?: boolean;
  readonly location?: { readonly hostname: string; readonly origin: string };
  readonly navigator?: { readonly credentials?: CredentialsContainer };
  readonly PublicKeyCredential?: PublicKeyCredentialClass;
}

export const platform = globalThis as unknown as PasskeyPlatform;
