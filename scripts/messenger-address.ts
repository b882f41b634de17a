/** Says where the relay of `npm start` has the messenger, on standard error: standard output has its one `ready` line. */
process.stderr.write(`
messenger   https://127.0.0.1:8443/app/
            npm run web opens it in Chromium, with a fresh profile that trusts this relay
            another browser trusts it once .posthouse/tls/ca.pem is imported as an authority:
            Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import
            Chromium: Settings, Privacy and security, Security, Manage certificates, Import
            remove it again afterwards: it is for development

`);
