/** What a failure of TLS means, by the code of Node or OpenSSL. Other failures keep their own text. */
const MEANINGS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet, or the clock of this machine is wrong',
  CERT_REVOKED: 'the certificate is revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself, and not by an authority that is trusted here',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is signed by an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate is signed by an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is signed by an authority that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is signed by an authority that is not trusted here',
  CERT_SIGNATURE_FAILURE: 'the certificate is signed by an authority that is not trusted here',
  INVALID_PURPOSE: 'the certificate is not for this purpose (see its extended key usage)',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the other end does not speak TLS',
  ERR_SSL_HTTP_REQUEST: 'the other end speaks HTTP without TLS',
  ERR_SSL_NO_SHARED_CIPHER: 'the two ends have no cipher in common',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the other end speaks only versions of TLS before 1.2',
  ERR_SSL_NO_APPLICATION_PROTOCOL: 'the other end speaks none of the protocols of this port (ALPN)',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'the other end does not trust the authority of the certificate of this end',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'the other end refuses the certificate of this end',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'the other end found that the certificate of this end has expired',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: 'the other end found that the certificate of this end is revoked',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: 'the other end refuses the certificate of this end',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the other end requires a certificate of this end',
};

/** Why a connection failed. */
export function connectionErrorText(error: Error): string {
  const code = codeOf(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return altNameText(error);
  return verificationText(code) ?? error.message;
}

/** The meaning of a code of a failed verification, if it is known. */
export function verificationText(code: string): string | undefined {
  return Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined;
}

/** Node's text has the names on both sides. */
function altNameText({ message }: Error): string {
  const reason = message.replace(/^Hostname\/IP does not match certificate's altnames: /, '');
  return `the certificate is for other names: ${reason}`;
}

/** The other end answered TLS with plain text. */
export function speaksNoTls(error: Error): boolean {
  return codeOf(error) === 'ERR_SSL_WRONG_VERSION_NUMBER';
}

/** OpenSSL's reason in the text of an error: `write EPROTO 80…:error:0A00010B:SSL routines:func:reason:file:line:`. */
const REASON = /:SSL routines:[^:]*:([^:]+):/;

/** If a write was pending, the error is that of the write, and only its text has the reason. */
function codeOf(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const [, reason] = (code === 'EPROTO' && REASON.exec(error.message)) || [];
  return reason === undefined ? code : `ERR_SSL_${reason.toUpperCase().replaceAll(' ', '_')}`;
}
